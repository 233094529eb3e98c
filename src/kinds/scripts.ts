/**
 * The scripts of lua/: how they are called, and their texts. A method stands for a script: its arguments in the order of the
 * script's header, and the first words of its replies. A test compares both with the headers.
 */
import { bodies, heads, functions as own } from './scripts.generated.ts'

type List = (string | number)[]

interface CommonScripts {
  tend(ttl: number, ...waiters: List): 'tended' | 'unfinished'
  leave(id: string, entry?: string): 'left' | 'returned' | 'unfinished' | 'absent'
  renew(...asked: List): 'renewed'
  forceRelease(request: string, only?: string): 'released' | 'unfinished' | 'free'
  sweep(): 'swept' | 'unfinished'
}

type Acquired = 'granted' | 'succeeded' | 'reentered' | 'refused' | 'full' | 'unfinished'
type Released = 'released' | 'passed' | 'unfinished' | 'ended'

/** The scripts of the mutex. */
export interface MutexScripts extends CommonScripts {
  acquire(claim: string, mode?: string | number, floor?: number, returned?: number): Acquired | 'absent'
  release(id: string, used?: number, minHold?: number): Released
  pass(id: string, claim: string, issued: number, lease: number): 'recorded' | 'gone'
  inspect(most?: number, ticket?: string, behind?: string): 'state'
}

/** The scripts of the semaphore, and of the read-write lock. */
export interface PermitsScripts extends CommonScripts {
  acquire(claim: string, mode?: string | number, waits?: number): Acquired | 'deadlock'
  release(id: string, minHold?: number): Released
  inspect(most: number, after: string, ticket?: string, behind?: string): 'state'
}

/** What both sets have. What the last arguments mean depends on the set. */
export interface QueueScripts extends CommonScripts {
  acquire(claim: string, mode?: string | number, third?: number, fourth?: number): Acquired | 'absent' | 'deadlock'
  release(id: string, second?: number, third?: number): Released
}

/** The texts of scripts by their names. */
export type Texts<S> = { readonly [N in keyof S]: string }

/** Puts the parts of the texts together. A line `--@a b` stands for the functions of these names. */
export function textsOf(
  parts: Record<string, string>,
  head: string,
  functions: Record<string, string> = own,
): Record<string, string> {
  const known: Record<string, string> = { ...functions, KEYS: head }
  const whole = (text: string): string =>
    text.replace(/^--@(.*)$/gm, (_, names: string) =>
      names
        .split(' ')
        .map(name => whole(known[name]!))
        .join('\n'),
    )
  return Object.fromEntries(Object.entries(parts).map(([name, body]) => [name, whole(body)]))
}

export const mutexScripts = textsOf(bodies.mutex, heads.mutex) as unknown as Texts<MutexScripts>
export const semaphoreScripts = textsOf(bodies.permits, heads.semaphore) as unknown as Texts<PermitsScripts>
export const readWriteScripts = textsOf(bodies.permits, heads.readWrite) as unknown as Texts<PermitsScripts>

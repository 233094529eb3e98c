/**
 * A semaphore has two sets of scripts: one for semaphores without groups, which costs as little as if there were no
 * groups, and one for semaphores with groups. Redis knows whether a semaphore has groups now, and answers `grouped` or
 * `plain` to a script of the wrong set, before it changes anything. Then the script of the other set is called. The client
 * remembers which semaphores have groups, so this costs a request only when the first group comes or the last one goes. That
 * request is a part of the same call, with its place in the order of requests and its time limit (I6).
 *
 * A call that brings a group, or has a waiter with one, goes to the second set at once.
 */
import type { ArgsOf, KeysOf, Reply, Runner } from '../../kind.ts'
import type { Outcome } from '../../outcome.ts'
import { scripts as groups } from './semaphore/groups/scripts.generated.ts'
import { scripts as plain } from './semaphore/scripts.generated.ts'

const { acquire, forceRelease, inspect, leave, release, sweep, tend } = groups
/** Every script but `renew`, which has nothing to do with groups. */
const inGroups = { acquire, forceRelease, inspect, leave, release, sweep, tend }

type Plain = typeof plain
type Grouped = { readonly [N in keyof typeof inGroups as `${N}InGroups`]: (typeof inGroups)[N] }
export type SemaphoreScripts = Plain & Grouped
/** The scripts as a kind of lock sees them: without the answers that only say which set to use. */
export type AnsweringScripts = {
  readonly [N in keyof Plain]: Omit<Plain[N], 'replies'> & {
    readonly replies?: readonly Exclude<NonNullable<Plain[N]['replies']>[number], 'grouped'>[]
  }
}

export const scripts: SemaphoreScripts = {
  ...plain,
  ...(Object.fromEntries(Object.entries(inGroups).map(([name, script]) => [`${name}InGroups`, script])) as Grouped),
}

/** A client remembers at most this many semaphores with groups. */
const MOST_REMEMBERED = 1_000

const withGroup = /^\S+ \d+ \S+ \d+ \d+ \d+\/\d+s?;/

function bringsGroup(args: Readonly<Record<string, unknown>>): boolean {
  const { claim, entry, waiters = [] } = args
  const claims = claim ?? entry
  return claims === undefined
    ? (waiters as unknown[]).some(each => withGroup.test(`${each}`))
    : withGroup.test(claims as string)
}

export class GroupRunner implements Runner<AnsweringScripts> {
  readonly #runner: Runner<SemaphoreScripts>
  /** The semaphores that have groups, by their first keys. */
  readonly #grouped: Set<string>

  constructor(runner: Runner<SemaphoreScripts>, grouped: Set<string>) {
    this.#runner = runner
    this.#grouped = grouped
  }

  run<N extends keyof AnsweringScripts, T = Reply<AnsweringScripts[N]>>(
    name: N,
    keys: KeysOf<AnsweringScripts[N]>,
    args: ArgsOf<AnsweringScripts[N]>,
    read: (reply: Reply<AnsweringScripts[N]>) => T | Promise<T> = reply => reply as T,
  ): Promise<T> {
    return new Promise((done, failed) => this.post(name, keys, args, read, { done, failed }))
  }

  post<N extends keyof AnsweringScripts, T>(
    name: N,
    keys: KeysOf<AnsweringScripts[N]>,
    args: ArgsOf<AnsweringScripts[N]>,
    read: (reply: Reply<AnsweringScripts[N]>) => T | Promise<T>,
    to: Outcome<T>,
  ): void {
    const { lock } = keys as { readonly lock?: string }
    if (lock === undefined) return this.#runner.post(name, keys as never, args as never, read as never, to)
    const inGroups = `${name}InGroups` as keyof Grouped
    const brings = bringsGroup(args)
    if (brings) this.#remember(lock)
    const called = brings || this.#grouped.has(lock) ? inGroups : name
    const instead = (status: unknown) => {
      if (status === 'grouped') this.#remember(lock)
      else if (status === 'plain') this.#grouped.delete(lock)
      else return undefined
      return status === 'grouped' ? inGroups : name
    }
    this.#runner.post<keyof SemaphoreScripts, T>(called, keys as never, args as never, read as never, to, instead)
  }

  #remember(lock: string): void {
    this.#grouped.delete(lock)
    const [oldest] = this.#grouped
    if (oldest !== undefined && this.#grouped.size === MOST_REMEMBERED) this.#grouped.delete(oldest)
    this.#grouped.add(lock)
  }
}

/**
 * Locks that are not in Redis. A run starts no servers for them. The user starts the server, and names its address in an
 * environment variable, which the workers inherit.
 */
import type { Rival } from '../contract.ts'
import { notInstalled } from './installed.ts'

/** What differs among these rivals: all of them are mutexes whose clients are written for Node. */
export interface Elsewhere extends Pick<Rival, 'name' | 'fair' | 'note' | 'skips' | 'open'> {
  readonly package: string
  /** The environment variable with the address. */
  readonly variable: string
  /** An address, as the variable may have it. */
  readonly example: string
}

/** Every measurement with so many waiters takes longer than it tells: each of them costs the server a write to disk. */
export const tooMany = Object.fromEntries(
  ['drain-10000', 'idle-1000', 'keys-1000', '2x100', '2x1000', 'burst-200'].map(name => [
    name,
    'is left out for locks that are not in Redis',
  ]),
)

export function elsewhere({ variable, example, ...rival }: Elsewhere): Rival {
  return {
    ...rival,
    kind: 'rival',
    runtime: 'node',
    async missing() {
      const absent = await notInstalled(rival.package)
      return absent ?? (process.env[variable] ? undefined : `no server: set ${variable} to its address, as ${example}`)
    },
  }
}

export function addressIn(variable: string): string {
  return process.env[variable]!
}

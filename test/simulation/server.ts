/** A Redis in memory, as far as the locks need it: the scripts by name, and channels with their listeners. */

import { scripts } from '../../src/redis/scripts.generated.ts'
import type { ScriptName } from '../../src/redis/scripts.ts'
import { type Host, LockKeys, type Watcher } from './lock-state.ts'
import {
  type Args,
  acquire,
  forceRelease,
  inspect,
  leave,
  pass,
  type Reply,
  release,
  renewOne,
  tend,
} from './scripts.ts'
import type { Timeline } from './timeline.ts'

/** The time of day at virtual time 0, ms. */
const EPOCH = 1_750_000_000_000

/** What the server knows of a connection that has subscribed. */
export interface Listener {
  receive(channel: string, text: string): void
}

export class Server implements Host {
  readonly watcher: Watcher
  readonly #timeline: Timeline
  readonly #locks = new Map<string, LockKeys>()
  readonly #channels = new Map<string, Set<Listener>>()

  readonly #epoch: number

  constructor(timeline: Timeline, watcher: Watcher, epoch = EPOCH) {
    this.#timeline = timeline
    this.watcher = watcher
    this.#epoch = epoch
  }

  get micros(): number {
    return Math.floor((this.#epoch + this.#timeline.now) * 1000)
  }

  get now(): number {
    return Math.floor(this.micros / 1000)
  }

  /** Every lock that has a key, by its key in Redis, after what has expired is gone. */
  get locks(): Map<string, LockKeys> {
    for (const [lock, keys] of this.#locks) {
      keys.dropExpired(this.now)
      if (keys.empty) this.#locks.delete(lock)
    }
    return this.#locks
  }

  /** Runs a script with its KEYS and ARGV as the client sends them. */
  run(name: ScriptName, keys: readonly string[], argv: readonly string[]): Reply {
    if (name === 'renew') return this.#renew(keys, argv)
    const args = named(scripts[name].args, argv)
    const lock = keys[0]!
    const at = this.keysOf(lock)
    switch (name) {
      case 'acquire':
        return acquire(this, lock, at, args)
      case 'release':
        return release(this, lock, at, args)
      case 'pass':
        return pass(this, lock, at, args)
      case 'leave':
        return leave(this, lock, at, args)
      case 'tend':
        return tend(this, lock, at, args, argv.slice(scripts.tend.args.length - 1))
      case 'forceRelease':
        return forceRelease(this, lock, at, args)
      case 'inspect':
        return inspect(this, at, args)
    }
  }

  keysOf(lock: string): LockKeys {
    let keys = this.#locks.get(lock)
    if (!keys) {
      keys = new LockKeys()
      this.#locks.set(lock, keys)
    }
    return keys
  }

  subscribe(channel: string, listener: Listener): void {
    const listeners = this.#channels.get(channel)
    if (listeners) listeners.add(listener)
    else this.#channels.set(channel, new Set([listener]))
  }

  unsubscribe(channel: string, listener: Listener): void {
    const listeners = this.#channels.get(channel)
    listeners?.delete(listener)
    if (listeners?.size === 0) this.#channels.delete(channel)
  }

  /** The connection has gone, as far as the server can see. */
  forget(listener: Listener): void {
    for (const channel of this.#channels.keys()) this.unsubscribe(channel, listener)
  }

  publish(channel: string, text: string): number {
    const listeners = this.#channels.get(channel)
    for (const listener of listeners ?? []) listener.receive(channel, text)
    return listeners?.size ?? 0
  }

  /** A restart without persistence, FLUSHALL, a failover that lost the last writes. */
  loseData(): void {
    for (const keys of this.#locks.values()) this.watcher.taken(keys.holds(this.now))
    this.#locks.clear()
  }

  #renew(locks: readonly string[], [memory, ...asked]: readonly string[]): unknown[] {
    const one = (lock: string, i: number) =>
      renewOne(this, lock, this.keysOf(lock), Number(memory), asked.slice(3 * i, 3 * i + 3))
    return ['renewed', ...locks.map(one)]
  }
}

function named(names: readonly string[], argv: readonly string[]): Args {
  return Object.fromEntries(argv.slice(0, names.length).map((value, i) => [names[i]!, value]))
}

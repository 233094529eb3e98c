/**
 * The server of a history: it runs the real scripts over a Redis in memory (redis/), delivers messages to subscribers, and
 * tells a watcher what the scripts decide (witness.ts).
 */
import { createHash } from 'node:crypto'
import { scripts } from '../../src/kinds/mutex/scripts.generated.ts'
import { Namespace } from '../../src/redis/keys.ts'
import { textOf } from '../../src/redis/scripts.ts'
import { type LockState, liveHolds, nothing, queueOf, readLock } from './lock-state.ts'
import type { Reply } from './redis/lua.ts'
import { FakeRedis } from './redis/redis.ts'
import { textOf as utf8 } from './redis/values.ts'
import type { Timeline } from './timeline.ts'
import { type Joined, type ScriptName, type Watcher, witness } from './witness.ts'

/** The time of day at virtual time 0, ms. */
const EPOCH = 1_750_000_000_000

type Texts = { readonly [N in ScriptName]: string }

/** The texts that clients with these settings send, and the names of the scripts by their texts and by the hashes of these. */
function known(tokenMemory: number) {
  const { cluster, inboxes } = new Namespace('lock:', false)
  const all = Object.entries(scripts).map(([name, script]) => {
    return [name as ScriptName, textOf(script, { cluster, inboxes, tokenMemory })] as const
  })
  const names = all.flatMap(([name, text]): [string, ScriptName][] => [
    [text, name],
    [createHash('sha1').update(text).digest('hex'), name],
  ])
  return { texts: Object.fromEntries(all) as Texts, names: new Map(names) }
}

/** What the server knows of a connection that has subscribed. */
export interface Listener {
  receive(channel: string, text: string): void
}

export class Server {
  readonly #timeline: Timeline
  readonly #watcher: Watcher
  readonly #known: ReturnType<typeof known>
  readonly #redis: FakeRedis
  /** Each lock that a script has ever run on, as it was last read. */
  readonly #locks = new Map<string, LockState>()
  readonly #channels = new Map<string, Set<Listener>>()

  /** `tokenMemory`: of all its clients. */
  constructor(timeline: Timeline, watcher: Watcher, tokenMemory: number) {
    this.#known = known(tokenMemory)
    this.#timeline = timeline
    this.#watcher = watcher
    this.#redis = new FakeRedis(this, (channel, text) => this.publish(channel, text))
  }

  get micros(): number {
    return Math.floor((EPOCH + this.#timeline.now) * 1000)
  }

  get now(): number {
    return Math.floor(this.micros / 1000)
  }

  /** The names of all keys that have not expired. */
  get keys(): string[] {
    return this.#redis.keys.names
  }

  /** Each lock that a script has ever run on. */
  get locks(): LockState[] {
    return [...this.#locks.keys()].map(lock => this.lock(lock))
  }

  lock(lock: string): LockState {
    const seen = this.#locks.get(lock)
    if (seen && seen.keptUntil >= this.now) return seen
    const present = seen ? readLock(this.#redis.keys, lock) : nothing
    if (seen) this.#locks.set(lock, present)
    return present
  }

  /** The name of a script; `script`: what a client sends instead, its text or the hash of that. */
  nameOf(script: string): ScriptName {
    return this.#known.names.get(script)!
  }

  /** Runs a script with its KEYS and ARGV as the client sends them. */
  run(name: ScriptName, keys: readonly string[], argv: readonly string[]): Reply {
    const script = scripts[name]
    const locks: readonly string[] = script.keys[0] === 'locks' ? keys : keys.slice(0, 1)
    const before = locks.map(lock => this.lock(lock))
    const joined: Joined[] = []
    this.#redis.keys.joined = (key, claim, ticket) => {
      if (key === queueOf(locks[0]!)) joined.push({ claim: utf8(claim), ticket })
    }
    const reply = this.#redis.eval(this.#known.texts[name], keys, argv)
    for (const [i, lock] of locks.entries()) {
      const after = readLock(this.#redis.keys, lock)
      this.#locks.set(lock, after)
      witness(this.#watcher, { name, argv, lock, before: before[i]!, after, joined, now: this.now })
    }
    return reply
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
    for (const state of this.locks) this.#watcher.taken(liveHolds(state, this.now))
    this.#redis.keys.clear()
    for (const lock of this.#locks.keys()) this.#locks.set(lock, nothing)
  }
}

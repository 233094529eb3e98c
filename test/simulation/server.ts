/**
 * The server of a history. It runs the real scripts on a Redis in memory (redis/), delivers messages to subscribers,
 * and notifies a watcher of what the scripts decide (witness.ts).
 */
import { createHash } from 'node:crypto'
import { mutexScripts, readWriteScripts, semaphoreScripts } from '../../src/kinds/scripts.ts'
import { Namespace } from '../../src/redis/keys.ts'
import { textOf } from '../../src/redis/scripts.ts'
import { entryOf, isQueue, keysOf, type LockState, liveHolds, nothing, queuesOf, readLock } from './lock-state.ts'
import type { Keyspace } from './redis/keyspace.ts'
import type { Reply } from './redis/lua.ts'
import { FakeRedis } from './redis/redis.ts'
import type { Timeline } from './timeline.ts'
import { type Joined, type ScriptName, type Watcher, witness } from './witness.ts'

/** The time of day at virtual time 0, ms. */
const EPOCH = 1_750_000_000_000
/** A server that was never restarted started at this virtual time, in ms. */
const LONG_AGO = -1_000_000

/** A script of one kind of lock, and the script's text as clients send it. */
export interface KnownScript {
  readonly name: ScriptName
  readonly text: string
  /** Whether each run is repeated with Lua 5.4. For the scripts of a mutex, redis/scripts.test.ts does that. */
  readonly twice: boolean
}

/**
 * Returns a map of the scripts of all kinds of locks. Each script is found by its text, as clients send it, and by the
 * hash of that text.
 */
function known(tokenMemory: number) {
  const { cluster, inboxes } = new Namespace('lock:', false)
  const ofKind = (scripts: object) =>
    Object.entries<string>(scripts as Record<string, string>).flatMap(([name, script]): [string, KnownScript][] => {
      const text = textOf(script, { cluster, inboxes, tokenMemory })
      const known = { name: name as ScriptName, text, twice: scripts !== mutexScripts }
      return [
        [text, known],
        [createHash('sha1').update(text).digest('hex'), known],
      ]
    })
  return new Map([mutexScripts, semaphoreScripts, readWriteScripts].flatMap(ofKind))
}

/** A subscribed connection, as the server knows it. */
export interface Listener {
  receive(channel: string, text: string): void
}

export class Server {
  readonly host: string
  /** Whether a restart keeps all data, and the server says so. */
  readonly persists: boolean
  /** The virtual time of the latest start, in ms, and how often the server was restarted. */
  startedAt = LONG_AGO
  starts = 0
  readonly #timeline: Timeline
  readonly #watcher: Watcher
  readonly #known: ReturnType<typeof known>
  readonly #redis: FakeRedis
  /** The state of each lock on which a script has ever run, as last read. */
  readonly #locks = new Map<string, LockState>()
  readonly #channels = new Map<string, Set<Listener>>()

  /** `tokenMemory` is an option of lock clients. Here, all clients have the same value. */
  constructor(timeline: Timeline, watcher: Watcher, tokenMemory: number, host = 'server', persists = true) {
    this.host = host
    this.persists = persists
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

  /** The keys and their values. */
  get data(): Keyspace {
    return this.#redis.keys
  }

  /** The names of all keys that have not expired. */
  get keys(): string[] {
    return this.#redis.keys.names
  }

  /** The state of each lock on which a script has ever run. */
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

  /** Finds a script by its text, or by the hash of its text, as a client sends it. */
  scriptOf(script: string): KnownScript {
    return this.#known.get(script)!
  }

  /** Runs a script with its KEYS and ARGV as the client sends them. */
  run({ name, text, twice }: KnownScript, keys: readonly string[], argv: readonly string[]): Reply {
    const locks: readonly string[] = keys.slice(0, name === 'renew' ? keys.length / 2 : 1)
    const before = locks.map(lock => this.lock(lock))
    const joined: Joined[] = []
    this.#redis.keys.joined = (key, claim, ticket) => {
      if (queuesOf(locks[0]!).includes(key)) joined.push(entryOf(key, claim, ticket))
    }
    const reply = twice ? this.#redis.evalTwice(text, keys, argv) : this.#redis.eval(text, keys, argv)
    for (const [i, lock] of locks.entries()) {
      const after = readLock(this.#redis.keys, lock)
      this.#locks.set(lock, after)
      witness(this.#watcher, { name, argv, lock, before: before[i]!, after, joined, reply, now: this.now })
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

  /** Makes the server notice that a connection has ended. */
  forget(listener: Listener): void {
    for (const channel of this.#channels.keys()) this.unsubscribe(channel, listener)
  }

  publish(channel: string, text: string): number {
    const listeners = this.#channels.get(channel)
    for (const listener of listeners ?? []) listener.receive(channel, text)
    return listeners?.size ?? 0
  }

  /** Restarts: the data is lost, unless the server persists it. No excuse for a quorum, so the watcher is not told. */
  restart(): void {
    this.startedAt = this.#timeline.now
    this.starts += 1
    if (!this.persists) this.#empty()
  }

  /** What INFO says. Redis counts its uptime in whole seconds of the time of day. */
  info(loading: boolean, replica: boolean): string {
    const seconds = (ms: number) => Math.floor((EPOCH + ms) / 1000)
    const uptime = seconds(this.#timeline.now) - seconds(replica ? LONG_AGO : this.startedAt)
    return [
      `uptime_in_seconds:${uptime}`,
      `loading:${Number(loading)}`,
      `aof_enabled:${Number(this.persists)}`,
      `run_id:${this.host}${replica ? 'copy' : this.starts}`,
      `role:${replica ? 'slave' : 'master'}`,
      ...(replica ? [`master_host:${this.host}`, 'master_port:6379'] : []),
      '',
    ].join('\r\n')
  }

  /** Loses all data, as by FLUSHALL. */
  loseData(): void {
    for (const state of this.locks) this.#watcher.taken(liveHolds(state, this.now))
    this.#empty()
  }

  #empty(): void {
    this.#redis.keys.clear()
    for (const lock of this.#locks.keys()) this.#locks.set(lock, nothing)
  }

  /**
   * Loses one key of a lock, as by DEL or eviction. The number `which` selects the key. The lock's other keys remain.
   */
  loseKey(lock: string, which: number): void {
    const names = keysOf(lock)
    const name = names[which % names.length]!
    if (!isQueue(name)) this.#watcher.taken(liveHolds(this.lock(lock), this.now))
    this.#redis.keys.delete(name)
    if (this.#locks.has(lock)) this.#locks.set(lock, readLock(this.#redis.keys, lock))
  }
}

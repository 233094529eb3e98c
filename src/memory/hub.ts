/**
 * A store in memory: all locks of its clients, and the delivery of messages between the clients.
 *
 * A call runs in the store at once, and its answer and its messages arrive in later microtasks. They need no timer, so
 * a test may fake all timers. Microtasks of Node run before everything else, so after many answers in a row one answer
 * waits until the event loop has turned. Otherwise a program that asks for locks in a loop would stop its own timers.
 */
import { MessageChannel } from 'node:worker_threads'
import type { Backend, Made } from '../backend.ts'
import { awake, type Timer } from '../clock.ts'
import { LockArgumentError, LockClosedError, LockConnectionError, type LockError } from '../errors.ts'
import {
  type Channel,
  type Channels,
  CLIENT_ID_LENGTH,
  type Granted,
  type KindDefinition,
  type KindTraits,
} from '../kind.ts'
import { glob } from '../redis/glob.ts'
import { type Ids, randomIds } from '../redis/ids.ts'
import { Keys, Namespace } from '../redis/keys.ts'
import type { LinkListener } from '../redis/link.ts'
import { checkText, type Settings } from '../settings.ts'
import { MemoryClock } from './clock.ts'
import { MemoryKind } from './kind.ts'
import { type Hub, MemoryLock } from './lock.ts'
import { MEMORY, type Memory, type MemoryStore, type StoreClient } from './store.ts'

/** After this many answers, one waits for a turn of the event loop. */
const ANSWERS = 1_000
/** This many locks without holders and waiters are kept for what they remember. */
const MOST_IDLE = 1_000
const LOST = 'MemoryStore.lose has ended it'

export class MemoryHub implements Hub, MemoryStore {
  readonly clock = new MemoryClock()
  readonly [MEMORY]: Memory = { clock: this.clock, join: (...parts) => this.#join(...parts) }
  /** By their names, which contain the prefix of a client and the kind of the lock. */
  readonly locks = new Map<string, MemoryLock>()
  /** Locks without holders and waiters, whose pace or weights may still be asked for; the newest ones. */
  readonly #idle = new Map<string, MemoryLock>()
  readonly #clients = new Map<string, Connection>()
  readonly #connections = new WeakMap<StoreClient, Connection>()
  readonly #began = Date.now() * 1_000
  #last = this.#began
  #answers = 0
  /** Whether all clients are disconnected, also those that are made now. */
  #away = false

  lose(key: string): number {
    checkText('key', key)
    const lost = [...this.locks.values()].map(lock => (lock.key === key ? lock.take(LOST) : 0))
    return lost.reduce((sum, holds) => sum + holds, 0)
  }

  disconnect(client?: StoreClient): void {
    if (client === undefined) this.#away = true
    for (const connection of this.#connectionsOf(client)) connection.disconnect()
  }

  reconnect(client?: StoreClient): void {
    if (client === undefined) this.#away = false
    for (const connection of this.#connectionsOf(client)) connection.reconnect()
  }

  #connectionsOf(client: StoreClient | undefined): readonly Connection[] {
    if (client === undefined) return [...this.#clients.values()]
    const connection = this.#connections.get(client)
    if (!connection) throw new LockArgumentError('client', client, 'a LockClient of this store')
    return [connection]
  }

  #join(client: StoreClient, settings: Settings, listener: LinkListener): Backend {
    const left = () => this.#clients.delete(connection.ids.client)
    const connection = new Connection(this, settings, listener, left, this.#away)
    this.#clients.set(connection.ids.client, connection)
    this.#connections.set(client, connection)
    return connection
  }

  /** `keep`: the caller may add a hold or a waiter to the lock. */
  lock(name: string, key: string, mutex: boolean, keep: boolean): MemoryLock {
    const lock = this.locks.get(name) ?? this.#idle.get(name) ?? new MemoryLock(name, key, mutex, this)
    if (!keep) return lock
    this.locks.set(name, lock)
    this.#idle.delete(name)
    return lock
  }

  /** Resolves to the value in the next microtask, and now and then in the next turn of the event loop. */
  answer<T>(value: T): Promise<T> {
    this.#answers += 1
    return this.#answers % ANSWERS > 0 ? Promise.resolve(value) : turn().then(() => value)
  }

  now(): number {
    return this.clock.now()
  }

  get last(): number {
    return this.#last
  }

  tick(): number {
    this.#last = Math.max(this.#last + 1, this.#began + Math.round(this.now() * 1_000))
    return this.#last
  }

  timeOf(ticket: number): number {
    return (ticket - this.#began) / 1_000
  }

  reaches(id: string): boolean {
    return this.#clientOf(id)?.up === true
  }

  won(id: string, grant: Granted, lock: string): void {
    this.#clientOf(id)?.tell(listener => listener.onGranted(id, grant, lock))
  }

  taken(id: string, token: number, why: string): void {
    this.#clientOf(id)?.taken(id, token, why)
  }

  free(lock: string, by: string | undefined): void {
    this.#publish(lock, listener => listener.onUnlocked(lock, by))
  }

  entered(lock: string, owner: string): void {
    this.#publish(lock, listener => listener.onEntered(lock, owner))
  }

  ends(lock: string, ms: number, head: string | undefined): void {
    this.#publish(lock, listener => listener.onEnds?.(lock, ms))
    if (head !== undefined) this.#clientOf(head)?.tell(listener => listener.onEnds?.(lock, ms))
  }

  idle(lock: MemoryLock): void {
    this.locks.delete(lock.name)
    if (!lock.remembers) return
    this.#idle.set(lock.name, lock)
    const [oldest = ''] = this.#idle.keys()
    if (this.#idle.size > MOST_IDLE) this.#idle.delete(oldest)
  }

  #clientOf(id: string): Connection | undefined {
    return this.#clients.get(id.slice(0, CLIENT_ID_LENGTH))
  }

  #publish(lock: string, tell: (listener: LinkListener) => void): void {
    for (const connection of this.#clients.values()) if (connection.up && connection.hears(lock)) connection.tell(tell)
  }
}

/** Resolves in the next turn of the event loop. Fake timers do not replace message channels. */
function turn(): Promise<void> {
  return new Promise(resolve => {
    const { port1, port2 } = new MessageChannel()
    port2.once('message', () => {
      port2.close()
      resolve()
    })
    port1.postMessage(undefined)
  })
}

/** The error of a connection that is refused, as Node has it. */
function refused(): Error {
  return Object.assign(new Error('ECONNREFUSED: MemoryStore.disconnect'), { code: 'ECONNREFUSED' })
}

/** A call that waits until the client is connected again. */
interface Call {
  run(): void
  fail(error: LockError): void
}

/** One client of a store. */
class Connection implements Backend {
  readonly ids: Ids = randomIds()
  readonly inboxPerLock = false
  readonly answeredAt = Number.NEGATIVE_INFINITY
  readonly #hub: MemoryHub
  readonly #settings: Settings
  readonly #listener: LinkListener
  readonly #left: () => void
  readonly #names: Namespace
  /** How often this client listens to the message that a lock is free, by the name of the lock. */
  readonly #heard = new Map<string, number>()
  readonly #calls = new Set<Call>()
  /** Holds that were taken away during an outage. */
  readonly #missed: (() => void)[] = []
  #state: 'connected' | 'disconnected' | 'closed'

  constructor(hub: MemoryHub, settings: Settings, listener: LinkListener, left: () => void, away: boolean) {
    this.#hub = hub
    this.#settings = settings
    this.#listener = listener
    this.#left = left
    this.#state = away ? 'disconnected' : 'connected'
    this.#names = new Namespace(`${settings.prefix}:`, false)
  }

  get up(): boolean {
    return this.#state === 'connected'
  }

  get reachable(): boolean {
    return this.up
  }

  trouble(): undefined {}

  /** During an outage of the store, the client is made first, so that it can be listened to. */
  open(): void {
    if (this.up) return
    this.#listener.onDown(refused(), false)
    Promise.resolve().then(() => {
      if (this.#state === 'disconnected') this.#listener.onDisconnected(refused())
    })
  }

  close(): void {
    this.#state = 'closed'
    this.#left()
    for (const call of this.#calls) call.fail(new LockClosedError())
  }

  disconnect(): void {
    if (this.#state !== 'connected') return
    this.#state = 'disconnected'
    for (const lock of this.#hub.locks.values()) lock.cutOff(this.ids.client)
    this.#listener.onDown(refused(), false)
    this.#listener.onDisconnected(refused())
  }

  reconnect(): void {
    if (this.#state !== 'disconnected') return
    this.#state = 'connected'
    for (const tell of this.#missed.splice(0)) tell()
    for (const call of this.#calls) call.run()
    this.#listener.onUp()
    this.#listener.onMessagesResumed()
    this.#listener.onReconnected()
  }

  /**
   * Runs a call in the store: now, or when the client is connected again. Rejects with a LockError. `awaited`: until then,
   * the call keeps the process alive.
   */
  run<T>(call: () => T, awaited = false): Promise<T> {
    if (this.#state === 'disconnected') return this.#connected(awaited).then(() => this.run(call, awaited))
    try {
      if (this.#state === 'closed') throw new LockClosedError()
      return this.#hub.answer(call())
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #connected(awaited: boolean): Promise<void> {
    const { outageTimeout } = this.#settings
    const { clock } = this.#hub
    return new Promise((resolve, reject) => {
      let timer: Timer | undefined
      const over = (settle: () => void) => {
        timer?.cancel()
        this.#calls.delete(call)
        settle()
      }
      const call: Call = { run: () => over(resolve), fail: error => over(() => reject(error)) }
      this.#calls.add(call)
      timer = awake(awaited ? clock : clock.background).after(outageTimeout, () =>
        call.fail(new LockConnectionError(`the store did not answer for ${outageTimeout} ms`, refused())),
      )
    })
  }

  /** Delivers a message after the answer to the call that has sent it, unless the client is disconnected by then. */
  async tell(deliver: (listener: LinkListener) => void): Promise<void> {
    await null
    await null
    if (this.up) deliver(this.#listener)
  }

  taken(id: string, token: number, why: string): void {
    const tell = () => this.#listener.onTaken(id, token, why)
    if (this.up) tell()
    else this.#missed.push(tell)
  }

  hears(lock: string): boolean {
    return this.#heard.has(lock)
  }

  channels(keys: Keys): Channels {
    const nameOf = (key: string) => keys.of(key).lock
    const count = (key: string, channel: Channel, by: number) => {
      if (channel !== 'unlock') return
      const name = nameOf(key)
      const sum = (this.#heard.get(name) ?? 0) + by
      if (sum > 0) this.#heard.set(name, sum)
      else this.#heard.delete(name)
    }
    return {
      subscribe: (key, channel) => {
        count(key, channel, 1)
        return undefined
      },
      unsubscribe: (key, channel) => count(key, channel, -1),
      isSubscribed: (key, channel) => channel === 'inbox' || this.hears(nameOf(key)),
    }
  }

  make<State, S>(kind: KindDefinition<State, S>, warn: (error: LockError) => void): Made<State> {
    const keys = new Keys(this.#names, kind)
    const of = (background?: KindTraits<State>['background']) =>
      new MemoryKind(kind, keys, this, this.#hub, this.#settings.waiterTtl, warn, background)
    return { keys, kind: of({ kind: of(), clock: this.#hub.clock.background }) }
  }

  async *list(kinds: readonly Keys[], pattern: string): AsyncGenerator<[kind: number, key: string][], void, undefined> {
    const matches = glob(pattern)
    const find = () =>
      [...this.#hub.locks.keys()].flatMap(name =>
        kinds.flatMap((keys, kind): [number, string][] => {
          const key = keys.keyOf(name)
          return key !== undefined && matches(key) ? [[kind, key]] : []
        }),
      )
    yield await this.run(find, true)
  }

  async rest(): Promise<void> {}
  together(): void {}
}

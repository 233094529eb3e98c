/** One of the processes: a real `LockClient` on its own clock, and its callers, which work while they hold the lock. */
import { LockClient } from '../../src/client.ts'
import type { Lease } from '../../src/key/lease.ts'
import { CLIENT_ID_LENGTH } from '../../src/kind.ts'
import { MEMORY, type MemoryStore, type StoreClient } from '../../src/memory/store.ts'
import type { LinkListener } from '../../src/redis/link.ts'
import { Server } from '../../src/redis/server.ts'
import type { Settings } from '../../src/settings.ts'
import { Random } from '../../test/kit/random.ts'
import { type Net, SimulatedRedis } from '../../test/simulation/network.ts'
import { Process } from '../../test/simulation/timeline.ts'
import type { Mode } from './scene.ts'

export const KEY = 'print'
/** How long a waiter stays in the queue without a heartbeat, in ms: shorter than usual, for those who watch. */
export const WAITER_TTL = 3_000
/** The time between two calls of a process that asks again and again, in ms. */
const PAUSE = 300

export type Life = 'runs' | 'frozen' | 'cut' | 'dead'

export interface Call {
  readonly number: number
  readonly fair: boolean
  /** When the call was made, or the lock granted, in ms of the page's time. */
  readonly since: number
  readonly lease?: Lease
}

/** What the callers do when they ask next, in ms. */
export interface Terms {
  work: number
  lease: number
}

export interface MemberListener {
  /** Tells what a process has learned from its client. */
  says(who: string, what: string): void
  granted(who: string, lease: Lease): void
}

export class Member {
  readonly name: string
  readonly process: Process
  readonly locks: LockClient
  /** Its calls that wait or hold. */
  readonly calls = new Map<number, Call>()
  mode: Mode = 'idle'
  cut = false
  readonly #net: Net
  readonly #terms: Readonly<Terms>
  readonly #listener: MemberListener
  readonly #connections: SimulatedRedis[] = []
  #count = 0

  /** `life`: how often a process of this name was started before. */
  constructor(name: string, life: number, net: Net, seed: number, terms: Readonly<Terms>, listener: MemberListener) {
    this.name = name
    this.#net = net
    this.#terms = terms
    this.#listener = listener
    this.process = new Process(name, net.timeline, new Random(seed, name.charCodeAt(0) + life))
    this.locks = new LockClient(this.#source(life), { label: name, waiterTtl: WAITER_TTL })
    this.locks.on('acquired', ({ fencingToken, via }) => this.#says(`acquired, ${via}, token ${fencingToken}`))
    this.locks.on('renewed', () => this.#says('renewed'))
    this.locks.on('released', () => this.#says('released'))
    this.locks.on('lost', ({ error }) => this.#says(`lost: ${error.message}`))
    this.locks.on('disconnected', ({ error }) => this.#says(`disconnected: ${error.message}`))
    this.locks.on('reconnected', () => this.#says('reconnected'))
  }

  get life(): Life {
    const { dead, frozen } = this.process
    return dead ? 'dead' : frozen ? 'frozen' : this.cut ? 'cut' : 'runs'
  }

  get waits(): boolean {
    return [...this.calls.values()].some(({ lease }) => lease === undefined)
  }

  /** Asks for the lock once. */
  async ask(fair: boolean): Promise<void> {
    const { calls } = this
    const number = ++this.#count
    const { work, lease: length } = this.#terms
    calls.set(number, { number, fair, since: this.#net.timeline.now })
    try {
      const lease = await this.locks.lock(KEY, { fair, lease: length, renew: true })
      this.#listener.granted(this.name, lease)
      calls.set(number, { number, fair, since: this.#net.timeline.now, lease })
      await new Promise<void>(resolve => {
        const timer = this.process.after(work, resolve)
        lease.signal.addEventListener('abort', () => {
          timer.cancel()
          resolve()
        })
      })
      await lease.release()
    } catch (error) {
      this.#says(`rejects: ${(error as Error).message}`)
    } finally {
      calls.delete(number)
      this.process.after(PAUSE, () => this.#again())
    }
  }

  /** From now on, the process asks in this way. */
  turn(mode: Mode): void {
    this.mode = mode
    if (this.calls.size === 0) this.#again()
  }

  kill(): void {
    this.process.kill()
    this.calls.clear()
    for (const connection of this.#connections) connection.vanish()
  }

  cutLine(): void {
    this.cut = true
    this.#net.weather.unreachable.set(this.process, 'refused')
    for (const connection of this.#connections) connection.break()
  }

  mendLine(): void {
    this.cut = false
    this.#net.weather.unreachable.delete(this.process)
  }

  #again(): void {
    if (this.mode !== 'idle' && this.calls.size === 0) void this.ask(this.mode === 'fair')
  }

  #says(what: string): void {
    this.#listener.says(this.name, what)
  }

  /** The place of the locks, in the form in which `memory()` gives one: it brings a clock of its own. */
  #source(life: number): MemoryStore {
    const client = `${this.name}${life || ''}`.padEnd(CLIENT_ID_LENGTH, '_')
    let count = 0
    const ids = { client, next: () => `${client}${String(++count).padStart(16, '_')}` }
    const duplicate = () => {
      const connection = new SimulatedRedis(this.#net, this.process)
      this.#connections.push(connection)
      return connection
    }
    const redis = { options: { host: this.#net.host }, status: 'wait', connector: {}, isCluster: false, duplicate }
    const join = (_: StoreClient, settings: Settings, listener: LinkListener) =>
      new Server(redis, settings, this.process, listener, ids)
    return { [MEMORY]: { clock: this.process, join } } as unknown as MemoryStore
  }
}

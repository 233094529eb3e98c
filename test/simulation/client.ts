/**
 * A client in a simulated process: a real `Session` of redis-baton, and a listener that notifies the checks. Only
 * src/client.ts and src/calls.ts are left out. They add keys to errors and recognize nested calls.
 */
import type { Redis } from 'ioredis'
import type { Backend } from '../../src/backend.ts'
import { Quorum } from '../../src/compose/quorum/backend.ts'
import type { Hold, Loss } from '../../src/key/hold.ts'
import type { Lease } from '../../src/key/lease.ts'
import { type Channel, CLIENT_ID_LENGTH, type HoldName, type NextHolder, type Passed } from '../../src/kind.ts'
import type { EventArguments, KindClient, Observer } from '../../src/kind-client.ts'
import { Mutex, mutex } from '../../src/kinds/mutex/mutex.ts'
import { reading, writing } from '../../src/kinds/permits/read-write.ts'
import { semaphore } from '../../src/kinds/permits/semaphore.ts'
import { Stats } from '../../src/observe/stats.ts'
import type { Keys } from '../../src/redis/keys.ts'
import type { LinkListener } from '../../src/redis/link.ts'
import { Server } from '../../src/redis/server.ts'
import { Session } from '../../src/session.ts'
import type { CallTerms, Settings } from '../../src/settings.ts'
import { type Net, SimulatedRedis } from './network.ts'
import { READS, type SimulatedKind } from './plan.ts'
import type { Process } from './timeline.ts'

export interface ClientWatcher {
  /** A hold has begun. */
  acquired(client: SimulatedClient, hold: Hold): void
  /** The hold has been released. */
  ended(hold: Hold): void
  lost(hold: Hold, loss: Loss): void
  /** The client has received a reply about this hold, and the reply says that fair waiters are queued. */
  told(hold: string): void
}

/**
 * All clients of all histories share this object, because its histograms take longer to create than all other parts of
 * a client together.
 */
const stats = new Stats()

/** Generates ids that follow from the seed and are readable in a trace. Real ids are random. */
class Ids {
  readonly client: string
  last = ''
  #count = 0

  constructor(process: Process) {
    this.client = `${process.name}:`.padEnd(CLIENT_ID_LENGTH, '_')
  }

  readonly next = (): string => {
    this.last = `${this.client}${String(++this.#count).padStart(16, '_')}`
    return this.last
  }
}

/** A client's connections to one server. */
export interface Wire {
  readonly net: Net
  readonly commands: SimulatedRedis
  readonly messages: SimulatedRedis
}

/** Makes the backend count in `heard`, for each channel, the calls of `subscribe` minus the calls of `unsubscribe`. */
function counting(backend: Backend, heard: Map<string, number>): Backend {
  const channelsOf = backend.channels.bind(backend)
  const count = (key: string, channel: Channel, by: number) => {
    const name = `${channel} of ${key}`
    const sum = (heard.get(name) ?? 0) + by
    if (sum === 0) heard.delete(name)
    else heard.set(name, sum)
  }
  backend.channels = keys => {
    const { subscribe, unsubscribe, isSubscribed } = channelsOf(keys)
    return {
      subscribe: (key, channel) => {
        count(key, channel, 1)
        return subscribe(key, channel)
      },
      unsubscribe: (key, channel) => {
        count(key, channel, -1)
        unsubscribe(key, channel)
      },
      isSubscribed,
    }
  }
  return backend
}

/** Notices replies that say that fair waiters are queued. */
class WatchedMutex extends Mutex {
  queued: (hold: string) => void = () => {}

  override async pass(hold: HoldName, heir: NextHolder, token: number): Promise<Passed | undefined> {
    const passed = await super.pass(hold, heir, token)
    if (passed?.queued) this.queued(hold.id)
    return passed
  }
}

export class SimulatedClient implements Observer {
  readonly listening = false
  readonly process: Process
  /** The connections to each server. */
  readonly wires: readonly Wire[]
  /** The holds that the client has reported neither as released nor as lost. Maps the id of each claim to its hold. */
  readonly holds = new Map<string, Hold>()
  /** Calls that have not settled, by their ids. */
  readonly calling = new Map<string, CallTerms>()
  /** Virtual time since which Redis is out of reach, as far as the client knows. */
  outOfReach: number | undefined
  closing: Promise<void> | undefined
  closed = false
  readonly #net: Net
  readonly #ids: Ids
  readonly #heard = new Map<string, number>()
  readonly #session: Session
  /** The client's locks. A client of read-write locks has two entries: one for reading and one for writing. */
  readonly #all: readonly KindClient[]
  readonly #keys: Keys
  readonly #watcher: ClientWatcher
  readonly #hears: { readonly [H in keyof EventArguments]?: (...about: EventArguments[H]) => void } = {
    acquired: hold => {
      const { claim, name, token, via } = hold
      this.holds.set(claim.id, hold)
      this.#holders.set(name.id, hold)
      this.#note(() => `holds ${claim.id} ${via} ${token} by ${name.id}`)
      this.#watcher.acquired(this, hold)
    },
    released: hold => {
      this.holds.delete(hold.claim.id)
      this.#watcher.ended(hold)
    },
    lost: (hold, loss) => {
      this.#note(() => `lost ${hold.claim.id}: ${loss.message}`)
      this.holds.delete(hold.claim.id)
      this.#watcher.lost(hold, loss)
    },
    error: error => this.#note(() => `failed: ${error}`),
  }
  /**
   * Maps each id of a hold in Redis to the client's latest hold with this id. After a hand-off within the client, the
   * next hold has the same id in Redis.
   */
  readonly #holders = new Map<string, Hold>()

  /** `nets`: the ways to the servers. If there are several, the client's locks are mutexes over all of them. */
  constructor(nets: readonly Net[], process: Process, settings: Settings, kind: SimulatedKind, watcher: ClientWatcher) {
    const net = nets[0]!
    this.process = process
    this.#net = net
    this.#watcher = watcher
    this.#ids = new Ids(process)
    this.outOfReach = net.timeline.now
    const made = nets.map((): SimulatedRedis[] => [])
    const sources = nets.map((each, i) => {
      const duplicate = () => {
        made[i]!.push(new SimulatedRedis(each, process))
        return made[i]!.at(-1)
      }
      return { options: { host: each.host }, connector: {}, isCluster: false, duplicate } as unknown as Redis
    })
    const connect = (listener: LinkListener) => {
      const overheard = { ...listener, ...this.#overheard(listener) }
      const backend = sources[1]
        ? new Quorum(sources, settings, process, overheard, this.#ids)
        : new Server(sources[0]!, settings, process, overheard, this.#ids)
      return counting(backend, this.#heard)
    }
    this.#session = new Session(connect, settings, process, this, stats)
    this.wires = nets.map((net, i) => ({ net, commands: made[i]![0]!, messages: made[i]![1]! }))
    const watchedMutex: typeof mutex = {
      ...mutex,
      make(parts) {
        const watched = new WatchedMutex(parts)
        watched.queued = hold => watcher.told(hold)
        return watched
      },
    }
    const session = this.#session
    if (kind === 'mutex' || kind === 'quorum') this.#all = [session.locks(watchedMutex)]
    else if (kind === 'semaphore') this.#all = [session.locks(semaphore)]
    else this.#all = [session.locks(reading), session.locks(writing)]
    this.#keys = this.#all[0]!.keys
  }

  /** Returns the key of a lock in Redis. */
  lockOf(key: string): string {
    return this.#keys.of(key).lock
  }

  /** Like `LockClient.lock`, but returns undefined instead of throwing LockTimeoutError. */
  async lock(key: string, request: CallTerms): Promise<Lease | undefined> {
    const { last } = this.#ids
    const locks = request.wants === READS || this.#all.length === 1 ? this.#all[0]! : this.#all[1]!
    const terms = this.#all.length > 1 ? { ...request, wants: undefined } : request
    const outcome = locks.begin(key, request.owner, terms, request.timeout === 0, false)
    const id = this.#ids.last
    if (id !== last) this.calling.set(id, request)
    try {
      return (await outcome) ?? undefined
    } finally {
      this.calling.delete(id)
    }
  }

  forceRelease(key: string): Promise<boolean> {
    return this.#all[0]!.kind.inspection.forceRelease(key)
  }

  close(): Promise<void> {
    this.closing ??= this.#session.close(0).then(() => {
      this.closed = true
    })
    return this.closing
  }

  /** Whether the process runs and the client has not been asked to close. */
  get open(): boolean {
    return !this.process.dead && !this.closing
  }

  /**
   * Whether the client still wants the hold or the queue place with this id. The client wants it while the call with
   * this id waits, and while the lease with this id is held or is being released.
   */
  wants(id: string): boolean {
    const holder = this.#holders.get(id)
    return this.calling.has(id) || holder?.state.is === 'held' || holder?.state.is === 'releasing'
  }

  /**
   * The numbers of waiters, leases, channels and timers that an idle client still has, as text; undefined if it has
   * none. One timer for each server does not count: an open client uses it to check that messages arrive. Nor do the
   * timers of a client that tries to reach a dead server, or asks whether a replica is still one.
   */
  get residue(): string | undefined {
    const channels = this.#heard.size
    const waiting = this.#all.reduce((sum, client) => sum + client.waiting, 0)
    const leases = this.#all.reduce((sum, { held }) => sum + held, 0)
    const tries = this.wires.some(({ net }) => net.weather.dead || net.replica)
    const residue = { waiting, leases, channels, timers: tries ? 0 : this.process.armed - this.wires.length }
    const nothing = Object.values(residue).every(count => count <= 0)
    return nothing ? undefined : `${this.process.name} ${JSON.stringify(residue)}`
  }

  crash(): void {
    this.process.kill()
    for (const { commands, messages } of this.wires) {
      commands.vanish()
      messages.vanish()
    }
  }

  tell<H extends keyof EventArguments>(what: H, ...about: EventArguments[H]): void {
    const hear: ((...about: EventArguments[H]) => void) | undefined = this.#hears[what]
    hear?.(...about)
  }

  /** Returns a listener that notes whether commands reach Redis, and then calls `listener`. */
  #overheard(listener: LinkListener): Pick<LinkListener, 'onDown' | 'onUp'> {
    return {
      onDown: (error, brief) => {
        this.#note(() => `down: ${error.message}`)
        this.outOfReach ??= this.#net.timeline.now
        listener.onDown(error, brief)
      },
      onUp: () => {
        this.#note(() => 'up')
        this.outOfReach = undefined
        listener.onUp()
      },
    }
  }

  #note(text: () => string): void {
    this.#net.trace.note(this.process.name, text)
  }
}

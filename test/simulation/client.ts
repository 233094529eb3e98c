/**
 * A client as src/client.ts and src/session.ts make it, on a simulated process: everything below is the library's own
 * (Link, Mutex, Acquirer, Holds, Lease), and what stands here is the engine's wiring, without its events and counters.
 */
import type { Redis } from 'ioredis'
import pTimeout from 'p-timeout'
import type { Timer } from '../../src/clock.ts'
import { LockClosedError } from '../../src/errors.ts'
import type { Channel, Granted, Heir, HoldName, Passed } from '../../src/kind.ts'
import { Inspection } from '../../src/kinds/mutex/inspection.ts'
import { Mutex } from '../../src/kinds/mutex/mutex.ts'
import { Holds } from '../../src/lease/holds.ts'
import { Lease } from '../../src/lease/lease.ts'
import type { Hold } from '../../src/local/hold.ts'
import { LocalLocks } from '../../src/local/local-locks.ts'
import type { Loss } from '../../src/local/states.ts'
import type { Waiter, Wish } from '../../src/local/waiter.ts'
import type { Request, Settings } from '../../src/options.ts'
import { Link } from '../../src/redis/link.ts'
import { Acquirer } from '../../src/wait/acquire.ts'
import { limited, patiently } from '../../src/wait/patience.ts'
import { Turns } from '../../src/wait/turns.ts'
import { type Net, SimulatedRedis } from './network.ts'
import type { Process } from './timeline.ts'

const CLOSE_PATIENCE = 2_000

export interface ClientWatcher {
  /** A hold has begun. `alone`: its client believed that nobody else waits. */
  acquired(client: SimulatedClient, hold: Hold, alone: boolean): void
  /** A hold has ended by its release. */
  ended(hold: Hold): void
  lost(hold: Hold, loss: Loss): void
  /** The client was told, about this hold, that fair waiters are queued. */
  told(hold: string): void
}

/** Whose answers are looked at. */
class WatchedMutex extends Mutex {
  queued: (hold: string) => void = () => {}

  override async pass(hold: HoldName, heir: Heir, token: number): Promise<Passed | undefined> {
    const passed = await super.pass(hold, heir, token)
    if (passed?.queued) this.queued(hold.id)
    return passed
  }
}

export class SimulatedClient {
  readonly process: Process
  readonly commands: SimulatedRedis
  readonly messages: SimulatedRedis
  readonly locks: LocalLocks
  readonly acquirer: Acquirer
  readonly holding: Holds
  /** Holds that are neither released nor lost, by their own ids. */
  readonly holds = new Map<string, Hold>()
  /** Channels heard, less those dropped, by name. */
  readonly heard = new Map<string, number>()
  /** Calls that have not settled, by their ids. */
  readonly calling = new Map<string, Request>()
  /** Virtual time since which Redis is out of reach, as the client knows it. */
  outOfReach: number | undefined
  closing: Promise<void> | undefined
  closed = false
  readonly #net: Net
  readonly #link: Link
  readonly #mutex: WatchedMutex
  readonly #inspection: Inspection
  readonly #watcher: ClientWatcher
  #ids = 0

  constructor(net: Net, process: Process, settings: Settings, watcher: ClientWatcher) {
    this.process = process
    this.#net = net
    this.#watcher = watcher
    const made: SimulatedRedis[] = []
    const source = {
      options: {},
      duplicate: () => {
        made.push(new SimulatedRedis(net, process))
        return made.at(-1)
      },
    }
    this.#link = new Link(source as unknown as Redis, settings, process, {
      granted: (id, token, via, lock) => {
        if (!this.acquirer.grantedByMessage(id, token, via)) this.#strayGrant(id, token, lock)
      },
      lost: (id, token) => {
        this.holding.doubt(id)
        this.acquirer.lost(id, token)
      },
      unlocked: (key, by) => {
        if (by !== this.#link.clientId) this.acquirer.unlocked(key, by)
      },
      entered: (key, owner) => this.acquirer.entered(key, owner),
      down: error => this.#down(error),
      up: () => this.#up(),
      heard: () => {
        this.acquirer.lookAgain()
        this.holding.doubtAll()
      },
      disconnected: () => {},
      reconnected: () => {},
      busy: () => this.locks.waiting > 0 || this.locks.holding > 0,
    })
    ;[this.commands, this.messages] = made as [SimulatedRedis, SimulatedRedis]
    // Ids are random; here they follow from the seed, and can be read in a trace.
    Object.assign(this.#link, { clientId: `${process.name}:`.padEnd(12, '_') })
    this.#mutex = new WatchedMutex(this.#link.scripts, this.#link.keys, settings)
    this.#mutex.queued = hold => watcher.told(hold)
    this.#inspection = new Inspection(this.#link, this.#mutex, settings.tokenMemory)
    const patience = { waiterTtl: settings.waiterTtl, outage: settings.outageTimeout }
    const channels = {
      hear: (key: string, channel: Channel) => {
        this.#count(key, channel, 1)
        return this.#link.hear(key, channel)
      },
      drop: (key: string, channel: Channel) => {
        this.#count(key, channel, -1)
        this.#link.drop(key, channel)
      },
      hears: (key: string, channel: Channel) => this.#link.hears(key, channel),
    }
    const turns = new Turns(
      process,
      key => this.#link.hears(key, 'unlock'),
      key => (this.locks.get(key)?.waiting ?? 0) > 0,
    )
    this.locks = new LocalLocks(turns, settings.outageTimeout)
    this.acquirer = new Acquirer(this.#mutex, channels, process, patience, this.locks, {
      waiting: () => {},
      doubt: (id, token) => this.holding.doubt(id, token),
      trouble: () => undefined,
      failed: error => net.trace.note(process.name, () => `failed: ${error}`),
    })
    this.holding = new Holds(this.#mutex, process, this.locks, {
      renewed: () => {},
      released: hold => {
        this.holds.delete(hold.claim.id)
        watcher.ended(hold)
      },
      lost: (hold, loss) => {
        net.trace.note(process.name, () => `lost ${hold.claim.id}: ${loss.message}`)
        this.holds.delete(hold.claim.id)
        watcher.lost(hold, loss)
      },
      failed: error => net.trace.note(process.name, () => `failed: ${error}`),
      idle: () => {},
    })
    this.#down(new Error('there is no connection yet'))
    this.#link.open()
  }

  /** The key of a lock in Redis. */
  lockOf(key: string): string {
    return this.#link.keys.of(key).lock
  }

  /** As `LockClient.lock`: the lease, or undefined where that throws LockTimeoutError. */
  async lock(key: string, request: Request): Promise<Lease | undefined> {
    if (this.closing) throw new LockClosedError(key)
    request.signal?.throwIfAborted()
    const once = request.timeout === 0
    const id = `${this.#link.clientId}${String(++this.#ids).padStart(16, '_')}`
    this.calling.set(id, request)
    try {
      return await this.#acquire(key, id, request, once)
    } finally {
      this.calling.delete(id)
    }
  }

  async #acquire(key: string, id: string, request: Request, once: boolean): Promise<Lease | undefined> {
    const { owner } = request
    const wish: Wish = {
      claim: { key, id, owner: owner ?? id, label: request.label, lease: request.lease, headStart: request.headStart },
      mode: once ? 'once' : request.fair ? 'queue' : 'line',
      fairAfter: request.fairAfter,
      timeout: request.timeout,
      mayReenter: owner !== undefined,
      after: owner === undefined ? undefined : this.holding.record(key, owner),
    }
    let waiter!: Waiter
    let lease: Lease | undefined
    const outcome = new Promise<Lease | undefined>((resolve, reject) => {
      waiter = this.acquirer.start(wish, (end, waiting) => {
        if (end instanceof Error) return reject(end)
        lease = end && this.#take(waiting, end, request)
        resolve(lease)
      })
    })
    const limits = { signal: request.signal, timeout: once ? undefined : request.timeout }
    if (!limited(limits)) return outcome
    const giveUp = () => {
      if (lease) lease.release().catch(() => {})
      else this.acquirer.quit(waiter)
      return undefined
    }
    return patiently(outcome, limits, giveUp, this.process)
  }

  forceRelease(key: string): Promise<boolean> {
    return this.#inspection.forceRelease(key)
  }

  close(): Promise<void> {
    this.closing ??= this.#close()
    return this.closing
  }

  /** Whether it runs and has not been asked to close. */
  get open(): boolean {
    return !this.process.dead && !this.closing
  }

  /** Whether anybody in this process wants what the server has under this id. */
  wants(id: string): boolean {
    return this.calling.has(id) || this.locks.hold(id) !== undefined
  }

  /** The process is killed. */
  crash(): void {
    this.process.kill()
    this.commands.vanish()
    this.messages.vanish()
  }

  async #close(): Promise<void> {
    const { up } = this.#link.commands
    const left = Promise.all([this.acquirer.close(), this.holding.releaseAll()])
    if (up) await pTimeout(left, { milliseconds: CLOSE_PATIENCE, message: false, customTimers: this.#timers })
    this.#link.close()
    this.holding.close()
    this.closed = true
    await left
  }

  #take({ claim, since, alone }: Waiter, grant: Granted, { renew, maxHold }: Request): Lease {
    const hold = this.holding.take({ claim, since, renew, maxHold, alone }, grant)
    this.holds.set(claim.id, hold)
    this.#net.trace.note(this.process.name, () => `holds ${claim.id} ${grant.via} ${grant.token} by ${hold.name.id}`)
    this.#watcher.acquired(this, hold, alone)
    return new Lease(hold, this.holding)
  }

  #strayGrant(id: string, token: number, lock: string): void {
    const key = this.#link.keys.keyOf(lock)
    if (this.locks.hold(id)) return this.holding.doubt(id, token)
    if (key === undefined) return
    this.#net.trace.note(this.process.name, () => `gives back ${id}`)
    this.#mutex.giveBack({ key, id }).catch(() => {})
  }

  #down(error: Error): void {
    this.#net.trace.note(this.process?.name ?? '', () => `down: ${error.message}`)
    this.outOfReach ??= this.#net.timeline.now
    this.acquirer.disconnected(error)
  }

  #up(): void {
    this.#net.trace.note(this.process.name, () => 'up')
    this.outOfReach = undefined
    this.acquirer.reconnected()
  }

  #count(key: string, channel: Channel, by: number): void {
    const name = `${channel} of ${key}`
    const count = (this.heard.get(name) ?? 0) + by
    if (count === 0) this.heard.delete(name)
    else this.heard.set(name, count)
  }

  /** For p-timeout: timers of the process. */
  get #timers() {
    return {
      setTimeout: (fire: () => void, delay: number) => this.process.after(delay, fire),
      clearTimeout: (timer: Timer | undefined) => timer?.cancel(),
    } as unknown as { setTimeout: typeof setTimeout; clearTimeout: typeof clearTimeout }
  }
}

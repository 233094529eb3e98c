/**
 * A client as src/client.ts and src/engine.ts make it, on a simulated process: everything below is the library's own
 * (Link, Mutex, Acquirer, Renewal, Lease), and what stands here is the engine's wiring, without its events and counters.
 */
import type { Redis } from 'ioredis'
import pTimeout from 'p-timeout'
import type { Timer } from '../../src/clock.ts'
import { LockClosedError, type LockLostError } from '../../src/errors.ts'
import { inside, type Keeper, Lease } from '../../src/lease/lease.ts'
import { Renewal } from '../../src/lease/renewal.ts'
import { Inspection } from '../../src/locks/inspection.ts'
import { Mutex } from '../../src/locks/mutex.ts'
import type { Request, Settings } from '../../src/options.ts'
import type { Channel, Granted, Hold } from '../../src/primitive.ts'
import { Link } from '../../src/redis/link.ts'
import { Acquirer } from '../../src/wait/acquire.ts'
import type { Waiter } from '../../src/wait/waiters.ts'
import { type Net, SimulatedRedis } from './network.ts'
import type { Process } from './timeline.ts'

const CLOSE_PATIENCE = 2_000
const AFTER_LAPSE = 30

export interface ClientWatcher {
  /** A lease has been made. */
  acquired(client: SimulatedClient, lease: Lease): void
  lost(lease: Lease, error: LockLostError): void
}

export class SimulatedClient {
  readonly process: Process
  readonly commands: SimulatedRedis
  readonly messages: SimulatedRedis
  readonly acquirer: Acquirer
  readonly renewal: Renewal
  /** Channels heard, less those dropped, by name. */
  readonly heard = new Map<string, number>()
  /** Ids of calls that have not settled. */
  readonly calling = new Set<string>()
  /** Virtual time since which Redis is out of reach, as the client knows it. */
  outOfReach: number | undefined
  closing: Promise<void> | undefined
  closed = false
  readonly #net: Net
  readonly #link: Link
  readonly #mutex: Mutex
  readonly #inspection: Inspection
  readonly #watcher: ClientWatcher
  readonly #keeper: Keeper
  readonly #ending = new Set<Timer>()
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
    this.#keeper = {
      clock: process,
      release: lease => this.#release(lease),
      renew: (lease, ms) => this.renewal.renew(lease, ms),
    }
    this.#link = new Link(source as unknown as Redis, settings, process, {
      granted: (id, token, via, lock) => {
        if (!this.acquirer.grantedByMessage(id, token, via)) this.#strayGrant(id, lock)
      },
      lost: id => {
        const lease = this.renewal.find(id)
        if (lease) this.renewal.check([lease])
      },
      unlocked: key => this.acquirer.unlocked(key),
      down: error => this.#down(error),
      up: () => this.#up(),
      heard: () => {
        this.acquirer.lookAgain()
        this.renewal.check(this.renewal.leases)
      },
      disconnected: () => {},
      reconnected: () => {},
      busy: () => this.acquirer.waiting > 0 || this.renewal.size > 0,
    })
    ;[this.commands, this.messages] = made as [SimulatedRedis, SimulatedRedis]
    // Ids are random; here they follow from the seed, and can be read in a trace.
    Object.assign(this.#link, { clientId: `${process.name}:`.padEnd(12, '_') })
    const { clientId } = this.#link
    this.#mutex = new Mutex(this.#link.scripts, this.#link.keys, { ...settings, clientId })
    this.#inspection = new Inspection(this.#link, settings.tokenMemory)
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
    }
    this.acquirer = new Acquirer(this.#mutex, channels, process, patience, {
      waiting: () => {},
      holds: id => this.renewal.find(id) !== undefined,
      failed: error => net.trace.note(process.name, () => `failed: ${error}`),
    })
    this.renewal = new Renewal(this.#mutex, process, {
      renewed: () => {},
      lost: (lease, error) => {
        net.trace.note(process.name, () => `lost ${lease.id}: ${error.message}`)
        watcher.lost(lease, error)
      },
      ranOut: lease => this.#endLater(lease),
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
    this.calling.add(id)
    try {
      return await this.#acquire(key, id, request, once)
    } finally {
      this.calling.delete(id)
    }
  }

  async #acquire(key: string, id: string, request: Request, once: boolean): Promise<Lease | undefined> {
    const waiter = this.acquirer.start({
      claim: { key, id, owner: request.owner ?? id, lease: request.lease, headStart: request.headStart },
      mode: once ? 'once' : request.fair ? 'queue' : 'line',
      fairAfter: request.fairAfter,
      mayReenter: request.owner !== undefined,
    })
    const grant = await this.#patiently(waiter, request, once)
    if (grant && this.closing) {
      this.#giveBack(this.lockOf(key), id)
      throw new LockClosedError(key)
    }
    return grant && this.#hold(waiter, grant, request)
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
    return this.calling.has(id) || this.renewal.find(id) !== undefined
  }

  /** The process is killed. */
  crash(): void {
    this.process.kill()
    this.commands.vanish()
    this.messages.vanish()
  }

  async #close(): Promise<void> {
    for (const timer of this.#ending) timer.cancel()
    const { up } = this.#link.commands
    const releases = this.renewal.leases.map(lease => lease.release().catch(() => {}))
    const left = [this.acquirer.close(), ...releases]
    const limit = { milliseconds: CLOSE_PATIENCE, message: false, customTimers: this.#timers } as const
    if (up) await pTimeout(Promise.all(left), limit)
    this.#link.close()
    this.renewal.close()
    this.closed = true
    await Promise.all(left)
  }

  #patiently(waiter: Waiter, { signal, timeout }: Request, once: boolean): Promise<Granted | undefined> {
    const milliseconds = once || timeout === undefined ? Number.POSITIVE_INFINITY : timeout
    if (!signal && milliseconds === Number.POSITIVE_INFINITY) return waiter.outcome
    const fallback = () => this.acquirer.quit(waiter)
    const limit = { milliseconds, fallback, customTimers: this.#timers, ...(signal && { signal }) }
    return pTimeout(waiter.outcome, limit).catch(error => {
      fallback()
      throw signal?.aborted ? signal.reason : error
    }) as Promise<Granted | undefined>
  }

  #hold({ claim, since: called }: Waiter, grant: Granted, request: Request): Lease {
    const since = this.process.now()
    const terms = {
      hold: { key: claim.key, id: claim.id },
      owner: claim.owner,
      lease: claim.lease,
      renewUntil: request.renew ? since + request.maxHold : since,
      since,
      waited: since - called,
    }
    const lease = new Lease(terms, grant, this.#keeper)
    this.renewal.add(lease)
    this.#net.trace.note(this.process.name, () => `holds ${claim.id} ${grant.via} ${grant.token}`)
    this.#watcher.acquired(this, lease)
    return lease
  }

  #release(lease: Lease): Promise<boolean> {
    this.acquirer.releasing(lease.key)
    return this.renewal.end(lease, () => this.#endHold(inside.terms(lease).hold))
  }

  #endLater(lease: Lease): void {
    const { hold, lease: length } = inside.terms(lease)
    const timer = this.process.after(AFTER_LAPSE + length / 1000, () => {
      this.#ending.delete(timer)
      this.#endHold(hold).catch(() => {})
    })
    this.#ending.add(timer)
  }

  async #endHold(hold: Hold): Promise<boolean> {
    const { ended, successor } = await this.#mutex.release(hold)
    if (successor && !this.acquirer.grantedByReply(successor.id, successor.grant)) {
      this.#giveBack(this.lockOf(hold.key), successor.id)
    }
    return ended
  }

  #strayGrant(id: string, lock: string): void {
    if (this.#link.keys.keyOf(lock) === undefined) return
    this.process.after(0, () => {
      if (!this.renewal.find(id)) this.#giveBack(lock, id)
    })
  }

  #giveBack(lock: string, id: string): void {
    this.#net.trace.note(this.process.name, () => `gives back ${id}`)
    this.#mutex.giveBack(lock, id).catch(() => {})
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

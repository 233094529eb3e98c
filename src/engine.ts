/**
 * The composition root: makes the parts of a client, connects them, and takes a request from its call to its lease.
 *
 *      LockClient ──▶ Engine ─┬─▶ Acquirer ─┐
 *                             ├─▶ Renewal ──┼─▶ Mutex (Primitive) ──▶ Scripts ──▶ Link ──▶ Redis
 *                             └─▶ Inspection┘                                      │
 *                                     ▲                     messages, up, down     │
 *                                     └────────────────────────────────────────────┘
 */
import pTimeout from 'p-timeout'
import { systemClock, type Timer } from './clock.ts'
import { LockClosedError, LockConnectionError } from './errors.ts'
import { inside, type Keeper, Lease } from './lease/lease.ts'
import { Renewal } from './lease/renewal.ts'
import { Inspection } from './locks/inspection.ts'
import { Mutex } from './locks/mutex.ts'
import type { Announcer } from './observe/announce.ts'
import { type ClientStats, Stats } from './observe/stats.ts'
import { checkRenewal, type Request, type Settings } from './options.ts'
import type { Granted, Hold } from './primitive.ts'
import type { RedisSource } from './redis/clients.ts'
import { newHoldId } from './redis/ids.ts'
import { Link } from './redis/link.ts'
import { Acquirer } from './wait/acquire.ts'
import type { Waiter } from './wait/waiters.ts'

/** How long `close` waits for Redis to take its releases, in ms; what it did not take ends with its lease. */
const CLOSE_PATIENCE = 2_000

/** A hold that ran out here is ended in Redis this many ms later, and 0.1 % of its lease. */
const AFTER_LAPSE = 30

const clock = systemClock

export class Engine {
  readonly inspection: Inspection
  readonly #link: Link
  readonly #mutex: Mutex
  readonly #acquirer: Acquirer
  readonly #renewal: Renewal
  readonly #stats = new Stats()
  readonly #announcer: Announcer
  readonly #keeper: Keeper = {
    clock,
    release: lease => this.#release(lease),
    renew: (lease, ms) => this.#renew(lease, ms),
  }
  /** Holds that ran out and are still to be ended in Redis. */
  readonly #ending = new Set<Timer>()
  #closing: Promise<void> | undefined

  constructor(redis: RedisSource, settings: Settings, announcer: Announcer) {
    this.#announcer = announcer
    this.#link = new Link(redis, settings, clock, {
      granted: (id, token, via, lock) => {
        if (!this.#acquirer.grantedByMessage(id, token, via)) this.#strayGrant(id, lock)
      },
      lost: id => {
        const lease = this.#renewal.find(id)
        if (lease) this.#renewal.check([lease])
      },
      unlocked: key => this.#acquirer.unlocked(key),
      down: error => this.#acquirer.disconnected(error),
      up: () => this.#acquirer.reconnected(),
      heard: () => {
        this.#acquirer.lookAgain()
        this.#renewal.check(this.#renewal.leases)
      },
      disconnected: error => announcer.tell('disconnected', () => ({ error })),
      reconnected: () => announcer.tell('reconnected', () => ({})),
      busy: () => this.#acquirer.waiting > 0 || this.#renewal.size > 0,
    })
    this.#mutex = new Mutex(this.#link.scripts, this.#link.keys, { ...settings, clientId: this.#link.clientId })
    this.inspection = new Inspection(this.#link, settings.tokenMemory)
    const patience = { waiterTtl: settings.waiterTtl, outage: settings.outageTimeout }
    this.#acquirer = new Acquirer(this.#mutex, this.#link, clock, patience, {
      waiting: waiter => this.#waiting(waiter),
      holds: id => this.#renewal.find(id) !== undefined,
      failed: error => this.#failed(error),
    })
    this.#renewal = new Renewal(this.#mutex, clock, {
      renewed: ({ key, fencingToken }) => {
        this.#stats.renewed += 1
        announcer.tell('renewed', () => ({ key, fencingToken }))
      },
      lost: (lease, error) => {
        const { key, fencingToken } = lease
        this.#stats.lost += 1
        this.#stats.held(clock.now() - inside.terms(lease).since)
        announcer.tell('lost', () => ({ key, fencingToken, error }))
      },
      ranOut: lease => this.#endLater(lease),
    })
    this.#acquirer.disconnected(new Error('there is no connection yet'))
    this.#link.open()
  }

  get closed(): boolean {
    return this.#closing !== undefined
  }

  /** Why Redis is out of reach, while it is. */
  get outage(): Error | undefined {
    return this.#acquirer.outage
  }

  /**
   * The lease, or the waiter that has to go without it: out of time, or refused its single attempt (`once`). `owner`:
   * undefined, if the call is its own.
   */
  async acquire(key: string, owner: string | undefined, request: Request, once: boolean): Promise<Lease | Waiter> {
    if (this.closed) throw new LockClosedError(key)
    request.signal?.throwIfAborted()
    const id = newHoldId(this.#link.clientId)
    const waiter = this.#acquirer.start({
      claim: { key, id, owner: owner ?? id, lease: request.lease, headStart: request.headStart },
      mode: once ? 'once' : request.fair ? 'queue' : 'line',
      fairAfter: request.fairAfter,
      mayReenter: owner !== undefined,
    })
    let grant: Granted | undefined
    try {
      grant = await about(key, this.#patiently(waiter, request, once))
    } catch (error) {
      this.#stats.failed += 1
      throw error
    }
    if (grant && this.closed) {
      // Granted while the client was closing: nobody else will release it.
      this.#giveBack(this.#link.keys.of(key).lock, id)
      throw new LockClosedError(key)
    }
    if (grant) return this.#hold(waiter, grant, request)
    this.#stats[once ? 'refused' : 'timedOut'] += 1
    return waiter
  }

  /** For releases whose failure must not hide something more important: it becomes an event. */
  async releaseQuietly(lease: Lease): Promise<void> {
    await lease.release().catch(error => this.#failed(error))
  }

  stats(): ClientStats {
    return this.#stats.snapshot(this.#acquirer.waiting, this.#renewal.size)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    for (const timer of this.#ending) timer.cancel()
    const { up } = this.#link.commands
    const left = [this.#acquirer.close(), ...this.#renewal.leases.map(lease => this.releaseQuietly(lease))]
    if (up) await pTimeout(Promise.all(left), { milliseconds: CLOSE_PATIENCE, message: false })
    this.#link.close()
    this.#renewal.close()
    await Promise.all(left)
  }

  /** The outcome of the wait, or the end of the caller's patience, whichever is first. */
  #patiently(waiter: Waiter, { signal, timeout }: Request, once: boolean): Promise<Granted | undefined> {
    const milliseconds = once || timeout === undefined ? Number.POSITIVE_INFINITY : timeout
    if (!signal && milliseconds === Number.POSITIVE_INFINITY) return waiter.outcome
    const giveUp = () => this.#acquirer.quit(waiter)
    const wait = pTimeout(waiter.outcome, { milliseconds, fallback: giveUp, ...(signal && { signal }) })
    return wait.catch(error => {
      giveUp()
      throw signal?.aborted ? signal.reason : error
    }) as Promise<Granted | undefined>
  }

  #hold({ claim, since: called, handoff }: Waiter, grant: Granted, request: Request): Lease {
    const since = clock.now()
    const terms = {
      hold: { key: claim.key, id: claim.id },
      owner: claim.owner,
      lease: claim.lease,
      renewUntil: request.renew ? since + request.maxHold : since,
      since,
      waited: since - called,
    }
    const lease = new Lease(terms, grant, this.#keeper)
    this.#renewal.add(lease)
    const { key, owner, fencingToken, waited, via } = lease
    this.#stats.acquired(via, waited)
    if (handoff !== undefined) this.#stats.handedOff(handoff)
    this.#announcer.tell('acquired', () => ({ key, owner, fencingToken, waited, via }))
    return lease
  }

  async #renew(lease: Lease, ms: number): Promise<void> {
    checkRenewal(ms)
    await about(lease.key, this.#renewal.renew(lease, Math.floor(ms)))
  }

  async #release(lease: Lease): Promise<boolean> {
    const { key, fencingToken } = lease
    const { hold, since } = inside.terms(lease)
    this.#acquirer.releasing(key)
    const released = this.#renewal.end(lease, async () => {
      const ended = await this.#endHold(hold)
      if (ended) {
        const held = clock.now() - since
        this.#stats.released += 1
        this.#stats.held(held)
        this.#announcer.tell('released', () => ({ key, fencingToken, held }))
      }
      return ended
    })
    return about(key, released)
  }

  /**
   * A lease that ran out here lives a moment longer in Redis. If its owner re-enters in that moment, the hold, which
   * nobody will release any more, would keep the lock even after the other's release: so it is ended behind. A little
   * later, so that the lock is seen to lapse first, which is what happened to it.
   */
  #endLater(lease: Lease): void {
    const { hold, lease: length } = inside.terms(lease)
    const timer = clock.after(AFTER_LAPSE + length / 1000, () => {
      this.#ending.delete(timer)
      this.#endHold(hold).catch(error => this.#failed(error))
    })
    this.#ending.add(timer)
  }

  /** Ends the hold in Redis; whether it was live there. The lock may have gone to a waiter of this client. */
  async #endHold(hold: Hold): Promise<boolean> {
    const { ended, successor } = await this.#mutex.release(hold)
    if (successor && !this.#acquirer.grantedByReply(successor.id, successor.grant)) {
      this.#giveBack(this.#link.keys.of(hold.key).lock, successor.id)
    }
    return ended
  }

  /**
   * A grant for an id that nobody waits for. It may be the second telling of a grant that has just been taken, whose
   * lease is made a few microtasks later: so this looks once more after the present turn before it gives the lock back.
   */
  #strayGrant(id: string, lock: string): void {
    if (this.#link.keys.keyOf(lock) === undefined) return
    clock.after(0, () => {
      if (!this.#renewal.find(id)) this.#giveBack(lock, id)
    })
  }

  #giveBack(lock: string, id: string): void {
    this.#mutex.giveBack(lock, id).catch(error => this.#failed(error))
  }

  #waiting({ claim, refusal }: Waiter): void {
    this.#announcer.tell('waiting', () => ({
      key: claim.key,
      owner: claim.owner,
      ...(refusal?.position && { position: refusal.position }),
      ...(refusal && { holder: refusal.holder }),
    }))
  }

  #failed(error: unknown): void {
    if (!(error instanceof LockClosedError)) this.#announcer.tell('error', () => ({ error }))
  }
}

/** The same outcome; an error of the connection says which lock it was about, and has the stack of the call. */
export async function about<T>(key: string, call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    throw error instanceof LockConnectionError || error instanceof LockClosedError ? error.of(key) : error
  }
}

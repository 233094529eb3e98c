/** Calls of one client that hand the lock on to each other. */
import { test as base } from 'vitest'
import { surelyUntil } from '../../src/clock.ts'
import { Lease } from '../../src/key/lease.ts'
import type { Call as LockCall, Waiter } from '../../src/key/waiter.ts'
import type { Claim, Granted, Refused } from '../../src/kind.ts'
import type { Beside, Call } from './fake-kind.ts'
import { settled } from './promises.ts'
import { KEY, LEASE, Room } from './room.ts'

/** Number of tokens that a client reserves for a run of local hand-offs. */
export const BLOCK = 1_000
/** The first token of the first run of local hand-offs. */
export const FIRST = 10_000

interface Ask {
  id: string
  mode?: LockCall['mode']
  lease?: number
  owner?: string
  fairAfter?: number
  timeout?: number
  renew?: boolean
}

/** A call for a lock, and its outcome. */
export interface Asker {
  readonly id: string
  readonly waiter: Waiter
  lease: Lease | undefined
  /** How the wait ended, if it ended without a lease. 'quit' means that the caller gave up. */
  end: Error | 'quit' | undefined
}

export class HandingOn extends Room {
  /** The events reported so far, in order, each as "<what> <lease>". */
  readonly told: string[] = []
  /** Called for each reported event, before the event is recorded. */
  heard: (what: string, id: string) => void = () => {}

  /** Makes a call, and waits until the client can do nothing more without an answer from Redis or a timer. */
  async ask(ask: Ask): Promise<Asker> {
    const asker = this.begin(ask)
    await settled()
    return asker
  }

  /** Makes a call, and returns at once. No microtask that the call starts has run by then. */
  begin({ id, mode = 'line', lease = LEASE, owner, fairAfter, timeout, renew = true }: Ask): Asker {
    const claim = { key: KEY, id, owner: owner ?? id, label: 'this client', lease, headStart: 0 }
    const recorded = owner === undefined ? undefined : this.holding.record(KEY, owner)
    const asker: { -readonly [K in keyof Asker]: Asker[K] } = {
      id,
      waiter: undefined!,
      lease: undefined,
      end: undefined,
    }
    const since = this.clock.now()
    asker.waiter = this.requests.start(
      claim,
      {
        mode,
        fairAfter,
        timeout,
        mayReenter: owner !== undefined,
        recorded,
        since,
        begun: this.requests.begunAt(since),
        answered: false,
        waited: (end, { key }, now) => {
          if (end instanceof Error || !end) {
            asker.end = end ?? 'quit'
            return
          }
          const hold = this.holding.take({ claim, since, renew, maxHold: Number.POSITIVE_INFINITY }, key, end, now)
          asker.lease = new Lease(hold)
          this.tell('acquired', id)
        },
      },
      since,
    )
    return asker
  }

  /**
   * Starts a run of local hand-offs: refuses the first caller once, then grants it the lock with tokens for hand-offs.
   * The other callers are in the line behind the first caller.
   */
  async run(first: Ask, ...others: Ask[]): Promise<Asker[]> {
    const askers = [await this.ask(first)]
    await this.attempt.answer(this.refused())
    for (const ask of others) askers.push(await this.ask(ask))
    await this.grantNext()
    return askers
  }

  /** The oldest unanswered attempt. */
  get attempt(): Call<[claim: Claim, beside: Beside], Granted | Refused> {
    return this.kind.attempts.next
  }

  /** Lets Redis grant the lock to the oldest unanswered attempt, with the tokens that the attempt asked to reserve. */
  async grantNext(token = FIRST): Promise<void> {
    const [{ lease }, beside] = this.attempt.args
    const deadline = surelyUntil(this.clock.now(), lease)
    const block = 'reserve' in beside && beside.reserve > 0 ? { block: beside.reserve } : {}
    await this.attempt.answer({ granted: true, token, deadline, via: 'immediate', ...block })
  }

  /** Lets Redis answer the oldest unanswered request that records a new holder. */
  async recorded(queued = false): Promise<void> {
    const call = this.kind.passes.next
    await call.answer({ deadline: surelyUntil(this.clock.now(), call.args[1].lease), queued })
  }

  /** Lets Redis answer the oldest unanswered release. */
  async released(): Promise<void> {
    await settled()
    await this.kind.releases.next.answer({ ended: true })
  }

  /** The holders that were recorded in Redis, as owner and token. */
  get records(): [owner: string, token: number][] {
    return this.kind.passes.all.map(({ args: [, { owner }, token] }) => [owner, token])
  }

  /** The holds that were ended in Redis. `used` is the last token that was issued under the hold, minus FIRST. */
  get ended(): [hold: string, used: number | undefined][] {
    return this.kind.releases.all.map(({ args: [{ id }, used] }) => [id, used && used - FIRST])
  }

  get residue() {
    this.rest()
    const { table, clock, channels } = this
    return { waiting: table.waiting, leases: table.holds, timers: clock.armed, channels: channels.users }
  }

  override tell(what: string, id: string): void {
    this.heard(what, id)
    this.told.push(`${what} ${id}`)
  }
}

/** Returns the caller's lease. Fails if the caller has not been granted one. */
export function leaseOf({ id, lease }: Asker): Lease {
  if (!lease) throw new Error(`${id} has not been granted`)
  return lease
}

/** Declares a test, which receives a client of its own. */
export const test = base.extend('at', () => new HandingOn())

/**
 * One worker of the sale, be it a process (worker.ts) or one of several in a process (in-memory.ts). It handles the
 * orders from the coordinator, many at a time, each under the coupon's fair lock, and reports what it does.
 *
 * A careful program would check `lease.held` before it writes. The worker does not, because a process can still be
 * frozen between the check and the arrival of the write. In that case only the fencing token protects the shop, and
 * the demo shows this protection.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Lease, type LockClient, LockLostError } from '../../src/index.ts'
import type { FromWorker, Left, Lost, Paused, ToWorker } from './messages.ts'
import { now, sale } from './sale.ts'
import { decide, type OrderInHand, type Shop, sells, type Write } from './shop.ts'

/** One request for the lock, and its outcome. */
interface Visit {
  readonly request: number
  readonly requestedAt: number
  section: string | null
  refused: Lost['refused']
  wroteAt: number | null
}

export class Counter {
  readonly #name: string | number
  readonly #shop: Shop
  readonly #locks: LockClient | null
  readonly #say: (message: FromWorker) => void
  #requests = 0
  #sections = 0
  /** Set by `pause`, and cleared by the first critical section that is about to sell. */
  #pauseWanted = false
  #resume: (() => void) | undefined

  /** `name`: the beginning of the ids of its sections. `locks`: null if the sale runs without the lock. */
  constructor(name: string | number, shop: Shop, locks: LockClient | null, say: (message: FromWorker) => void) {
    this.#name = name
    this.#shop = shop
    this.#locks = locks
    this.#say = say
  }

  async heard(message: ToWorker): Promise<void> {
    if (message.kind === 'order') await this.handle(message)
    else if (message.kind === 'pause') this.#pauseWanted = true
    else if (message.kind === 'go') this.#resume?.()
  }

  /**
   * Handles one order until it has an answer. If the lock is lost, the worker requests the lock again for the same order.
   * So an order may be processed more than once.
   */
  async handle(order: OrderInHand): Promise<void> {
    const locks = this.#locks
    for (;;) {
      const visit: Visit = {
        request: ++this.#requests,
        requestedAt: now(),
        section: null,
        refused: null,
        wroteAt: null,
      }
      try {
        const left = locks
          ? await locks.using(order.coupon, { fair: true, lease: sale.lease }, lease =>
              this.#serve(order, visit, lease),
            )
          : await this.#serve(order, visit, null)
        // The report is sent after the release, so that it does not delay the next holder.
        if (left) return this.#say(left)
      } catch (error) {
        if (!(error instanceof LockLostError)) throw error
      }
      const { section, refused, wroteAt } = visit
      this.#say({ kind: 'lost', section, order: order.id, refused, wroteAt })
    }
  }

  /** Runs the critical section. Returns null if the shop refused a write. */
  async #serve(order: OrderInHand, visit: Visit, lease: Lease | null): Promise<Left | null> {
    const at = now()
    const section = `${this.#name}.${++this.#sections}`
    visit.section = section
    const { coupon } = order
    const token = lease?.fencingToken ?? null
    const accepted = (write: Write): boolean => {
      if (!write.accepted) visit.refused = { token: write.token, seen: write.seen }
      return write.accepted
    }

    const entry = await this.#shop.enter(coupon, token, section)
    const { request, requestedAt } = visit
    const found = entry.accepted ? entry.previous || null : null
    const hold = lease?.id ?? null
    const leaseEnds = leaseEnd(lease)
    this.#say({ kind: 'entered', section, order: order.id, request, requestedAt, at, hold, token, leaseEnds, found })
    if (!accepted(entry)) return null

    const look = await this.#shop.look(coupon, order.customer)
    const answer = decide(order, look)
    const selling = sells(answer, look)
    await sleep(selling ? sale.look + sale.payment : sale.look)
    if (selling && this.#pauseWanted)
      await this.#pause({ section, order: order.id, leaseEnds: leaseEnd(lease), stockRead: look.stock })

    if (!accepted(await this.#shop.record(order, token, answer, look))) return null
    visit.wroteAt = now()
    if (!accepted(await this.#shop.leave(coupon, token))) return null
    const stock = selling ? look.stock - 1 : look.stock
    return { kind: 'left', section, order: order.id, answer, stock, at: now() }
  }

  #pause(where: Omit<Paused, 'kind'>): Promise<void> {
    this.#pauseWanted = false
    return new Promise(resolve => {
      this.#resume = resolve
      this.#say({ kind: 'paused', ...where })
    })
  }
}

function leaseEnd(lease: Lease | null): number | null {
  return lease === null ? null : now() + lease.remaining()
}

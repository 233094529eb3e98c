/**
 * What a client takes back from Redis in the background: the claims of callers that have given up (I7), grants that
 * nobody wants, and holds that have ended here. No caller waits for the answers, but `close` does.
 */
import type { Clock, Timer } from '../clock.ts'
import type { HoldName, Kind, Released } from '../kind.ts'
import type { Hold } from './hold.ts'
import { RecentReleases } from './recent-releases.ts'
import type { Waiter } from './waiter.ts'

export interface WithdrawalsListener {
  /** Redis has answered a release. */
  onReleased(key: string, released: Released, now: number): void
  /** The lock may be free, although no release says so. */
  onFreed(key: string): void
  /** Reports a failure that no caller's promise reports. */
  readonly failed: (error: unknown) => void
}

/** The pause between attempts to remove a waiter while Redis refuses or is out of reach, in ms. */
const PAUSE = 1_000
/**
 * If a hold's deadline passes in this client, the hold is released in Redis this many ms later, plus 0.1 % of its
 * lease.
 */
const AFTER_LAPSE = 30

export class Withdrawals {
  /** Undefined if the kind cannot say which holds Redis has. */
  readonly recent: RecentReleases | undefined
  readonly #kind: Kind
  readonly #clock: Clock
  readonly #waiterTtl: number
  readonly #listener: WithdrawalsListener
  readonly #running = new Set<Promise<void>>()
  /** Holds whose deadline has passed in this client, and which will soon be released in Redis, each with its timer. */
  readonly #lapsed = new Map<Hold, Timer>()
  #closed = false

  /** `waiterTtl`: the expiry of a queued waiter, in ms. */
  constructor(kind: Kind, clock: Clock, waiterTtl: number, listener: WithdrawalsListener) {
    this.#kind = kind
    this.#clock = clock
    this.#waiterTtl = waiterTtl
    this.#listener = listener
    this.recent = kind.remaining && new RecentReleases(kind, clock)
  }

  /**
   * Removes the waiter and its hold from Redis, and repeats that until Redis answers. The waiter may be granted the lock
   * just before it expires, and its hold then lasts for one lease. When this much time has passed, everything of the
   * claim has expired in Redis. A failure is reported once for each waiter, unless its call was rejected for it.
   */
  leave(waiter: Waiter): void {
    this.#run(this.#leave(waiter))
  }

  /** Releases a hold once. */
  release(name: HoldName, used?: number, failed = this.#listener.failed): void {
    const done = (over: () => void) => ({
      done: (released: Released) => {
        const now = this.#clock.now()
        this.recent?.add(name, used, now)
        this.#listener.onReleased(name.key, released, now)
        over()
      },
      failed: (error: Error) => {
        this.#listener.onFreed(name.key)
        failed(error)
        over()
      },
    })
    this.#run(new Promise<void>(over => this.#kind.release(name, used, done(over))))
  }

  /** Releases a grant that no waiter of this client wants. */
  giveBack(name: HoldName): void {
    this.#kind.giveBack(name).then(() => this.recent?.add(name), this.#listener.failed)
  }

  /**
   * Plans the release, in Redis, of a hold whose deadline has passed in this client. In Redis, the lease of this hold
   * ends a moment later, and normally the hold ends with it. But if the owner re-enters before the lease has ended,
   * Redis keeps both holds, and no caller releases the old hold. The lock would then stay held after the release of the
   * re-entry. The planned release is sent only after the lease has ended in Redis. So the next grant still counts as a
   * grant after an expiry.
   */
  releaseLater(hold: Hold): void {
    const timer = this.#clock.after(AFTER_LAPSE + hold.length / 1000, () => this.#releaseNow(hold))
    this.#lapsed.set(hold, timer)
  }

  /** Returns whether the release of a hold with this id is planned. */
  planned(id: string): boolean {
    for (const { name } of this.#lapsed.keys()) if (name.id === id) return true
    return false
  }

  /**
   * Another server may have the locks of some keys. Ends holds that this client has released, and that Redis has
   * nevertheless.
   */
  sendAgain(concerns: (key: string) => boolean): void {
    this.recent?.sendAgain(concerns, (name, used) => this.release(name, used))
  }

  /** Sends at once what is planned, repeats nothing, and resolves when Redis has answered. */
  async close(): Promise<void> {
    this.#closed = true
    for (const hold of this.#lapsed.keys()) this.#releaseNow(hold)
    while (this.#running.size > 0) await Promise.all(this.#running)
  }

  #releaseNow(hold: Hold): void {
    this.#lapsed.get(hold)?.cancel()
    this.#lapsed.delete(hold)
    this.release(hold.name, hold.run?.last)
  }

  #run(done: Promise<void>): void {
    this.#running.add(done)
    done.then(() => this.#running.delete(done))
  }

  async #leave(waiter: Waiter): Promise<void> {
    const { claim, heldToken } = waiter
    const { key, id } = claim
    const pointless = this.#clock.now() + claim.lease + this.#waiterTtl
    for (;;) {
      try {
        await this.#kind.leave(claim)
        break
      } catch (error) {
        if (this.#closed || this.#clock.now() >= pointless) {
          if (waiter.told !== 'failure') this.#listener.failed(error)
          waiter.told = 'failure'
          break
        }
      }
      await new Promise<void>(resolve => this.#clock.after(PAUSE, resolve))
    }
    if (heldToken > 0) this.recent?.add({ key, id })
    // This client may have received only one message that the lock is free, and this waiter may have been the one that
    // reacted to it.
    this.#listener.onFreed(key)
  }
}

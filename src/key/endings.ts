/** The releases that run in the background: no caller waits for their answers, but `close` does. */
import type { Clock, Timer } from '../clock.ts'
import type { HoldName, Kind, Released } from '../kind.ts'
import type { Hold } from './hold.ts'
import { RecentReleases } from './recent-releases.ts'

export interface EndingsListener {
  /** Receives the reply to a release. */
  released(key: string, released: Released, now: number): void
  /** Called when a release was not answered, so the lock may be free. */
  unanswered(key: string): void
  /** Reports a failure that no caller's promise reports. */
  readonly failed: (error: unknown) => void
}

/**
 * If a hold's deadline passes in this client, the hold is released in Redis this many ms later, plus 0.1 % of its
 * lease.
 */
const AFTER_LAPSE = 30

export class Endings {
  readonly #kind: Kind
  readonly #clock: Clock
  readonly #listener: EndingsListener
  /** Undefined if the kind cannot say which holds Redis has. */
  readonly recent: RecentReleases | undefined
  readonly #running = new Set<Promise<void>>()
  /** Holds whose deadline has passed in this client, and which will soon be released in Redis, each with its timer. */
  readonly #lapsed = new Map<Hold, Timer>()

  constructor(kind: Kind, clock: Clock, listener: EndingsListener) {
    this.#kind = kind
    this.#clock = clock
    this.#listener = listener
    this.recent = kind.remaining && new RecentReleases(kind, clock)
  }

  /** Releases a hold in Redis in the background. Only `close` waits for the answer. */
  begin(name: HoldName, used?: number, failed = this.#listener.failed): void {
    const ended = new Promise<void>(over =>
      this.#kind.release(name, used, {
        done: released => {
          const now = this.#clock.now()
          this.recent?.add(name, used, now)
          this.#listener.released(name.key, released, now)
          over()
        },
        failed: error => {
          this.#listener.unanswered(name.key)
          failed(error)
          over()
        },
      }),
    )
    this.#running.add(ended)
    ended.then(() => this.#running.delete(ended))
  }

  /**
   * Called when another server may have the locks of some keys. Ends holds that this client has released, and that Redis
   * has nevertheless.
   */
  sendAgain(concerns: (key: string) => boolean): void {
    this.recent?.sendAgain(concerns, (name, used) => this.begin(name, used))
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
  later(hold: Hold): void {
    const timer = this.#clock.after(AFTER_LAPSE + hold.length / 1000, () => this.#endNow(hold))
    this.#lapsed.set(hold, timer)
  }

  /** Returns whether the release of a hold with this id is planned. */
  planned(id: string): boolean {
    for (const { name } of this.#lapsed.keys()) if (name.id === id) return true
    return false
  }

  #endNow(hold: Hold): void {
    this.#lapsed.get(hold)?.cancel()
    this.#lapsed.delete(hold)
    this.begin(hold.name, hold.run?.last)
  }

  /** Sends the releases at once that `later` has planned. */
  hurry(): void {
    for (const hold of this.#lapsed.keys()) this.#endNow(hold)
  }

  /** Resolves when Redis has answered all releases. */
  async over(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running)
  }
}

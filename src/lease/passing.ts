/**
 * Hands the lock from one lease of this client to the next waiter of this client, without a round trip (tenure.ts says
 * why that is safe), and tells Redis behind.
 *
 * A lease is handed on only where nothing about it is open: it is held; at least half of its length surely lasts, and not more
 * than all of it, because a lease that was prolonged further would leave its heir a time that it never asked for; it is the
 * only hold of its owner, whom nobody else can name and who has not begun to re-enter; and no question about it is under way.
 *
 * A release that finds nobody waiting, of a lease that might go on, is sent when the turn of the event loop is over. Two
 * callers who take turns at a lock come back at the same time: the reply of one's release and the grant of the other
 * arrive together, and who releases is often ahead of who asks by a few microtasks.
 *
 * What Redis is told, it is told late and seldom: who holds, for `inspect`, and that the new lease has its full length.
 * A run of hand-offs is over in a few milliseconds, so only who still holds then is recorded; most never are. A record
 * that comes late or twice changes nothing, because the hold is the same and an older token never replaces a newer one.
 */
import type { Clock, Timer } from '../clock.ts'
import type { Kind } from '../kind.ts'
import { inside, type Lease } from './lease.ts'
import type { Renewal } from './renewal.ts'
import type { Inherited, Tenure } from './tenure.ts'

/** Redis is told of a new holder who still holds after this many ms. */
const RECORD_AFTER = 1

/** The waiters of this client, as far as a lease can be handed to one of them. */
export interface Heirs<W> {
  /** The waiter whose turn it is, if it may have a lease of this length from us. */
  heir(key: string, lease: number): W | undefined
  /** Whether anybody of this client waits for the key. */
  awaited(key: string): boolean
  inherit(heir: W, grant: Inherited): void
}

export interface Told {
  /** The hold has to be ended in Redis: nobody was left to hand it to. */
  end(tenure: Tenure): void
  failed(error: unknown): void
}

/** A run of which Redis may not know who holds. */
interface Behind {
  timer: Timer | undefined
  /** The record that is under way. */
  recording: Promise<void> | undefined
}

export class Passing<W> {
  readonly #kind: Kind
  readonly #clock: Clock
  readonly #renewal: Renewal
  readonly #heirs: Heirs<W>
  readonly #told: Told
  readonly #behind = new Map<Tenure, Behind>()

  constructor(kind: Kind, clock: Clock, renewal: Renewal, heirs: Heirs<W>, told: Told) {
    this.#kind = kind
    this.#clock = clock
    this.#renewal = renewal
    this.#heirs = heirs
    this.#told = told
  }

  /** Ends the lease by handing the lock on; `ended` is called in between. False: it has to be released in Redis. */
  pass(lease: Lease, ended: () => void): boolean {
    const { tenure, lease: length } = inside.terms(lease)
    if (!tenure || !this.#goesOn(lease, tenure)) return false
    if (!this.#heirs.heir(lease.key, length) || !this.#renewal.handOn(lease)) return false
    const deadline = inside.deadline(lease)
    ended()
    // Somebody who was told of that may have ended the wait of the heir, and of all others: by closing the client.
    const heir = this.#heirs.heir(lease.key, length)
    if (heir) {
      this.#recordLater(tenure)
      this.#heirs.inherit(heir, { granted: true, token: tenure.issue(), deadline, via: 'handoff', tenure })
    } else {
      this.end(tenure)
      this.#told.end(tenure)
    }
    return true
  }

  /** Whether all that is missing for handing it on is somebody who waits. */
  wantsHeir(lease: Lease): boolean {
    const { tenure } = inside.terms(lease)
    return tenure !== undefined && this.#goesOn(lease, tenure) && !this.#heirs.awaited(lease.key)
  }

  #goesOn(lease: Lease, tenure: Tenure): boolean {
    const { lease: length } = inside.terms(lease)
    const now = this.#clock.now()
    const left = inside.deadline(lease) - now
    return tenure.left(now) > 0 && left >= length / 2 && left <= length
  }

  /**
   * The owner of a lease of this key is about to name itself to Redis, which has to know it by then: when this resolves.
   * Undefined: it does.
   */
  record(key: string, owner: string): Promise<void> | undefined {
    // Its answer may come after the release: an heir would hold the lock beside the one who has re-entered.
    for (const lease of this.#renewal.leasesOf(key)) if (lease.owner === owner) inside.terms(lease).tenure?.end()
    for (const [tenure, behind] of this.#behind) {
      if (tenure.hold.key !== key) continue
      const recording = this.#record(tenure, behind)
      // Whoever waits for it may give up before.
      recording?.catch(() => {})
      return recording
    }
    return undefined
  }

  /** The lock goes back to Redis, or is lost. */
  end(tenure: Tenure): void {
    tenure.end()
    this.#behind.get(tenure)?.timer?.cancel()
    this.#behind.delete(tenure)
  }

  #recordLater(tenure: Tenure): void {
    let behind = this.#behind.get(tenure)
    if (!behind) {
      behind = { timer: undefined, recording: undefined }
      this.#behind.set(tenure, behind)
    }
    behind.timer ??= this.#clock.after(RECORD_AFTER, () => this.#record(tenure, behind)?.catch(this.#told.failed))
  }

  #record(tenure: Tenure, behind: Behind): Promise<void> | undefined {
    behind.timer?.cancel()
    behind.timer = undefined
    const lease = this.#renewal.find(tenure.hold.id)
    if (lease && lease.fencingToken > tenure.recorded) {
      const recording = this.#tell(tenure, lease).finally(() => {
        if (behind.recording !== recording) return
        behind.recording = undefined
        // A hand-off since then has armed the timer again; a record that failed is repeated when somebody needs it.
        if (!behind.timer && tenure.recorded >= lease.fencingToken) this.#behind.delete(tenure)
      })
      behind.recording = recording
    }
    return behind.recording
  }

  async #tell(tenure: Tenure, lease: Lease): Promise<void> {
    const { recorded } = tenure
    const { fencingToken } = lease
    tenure.recorded = fencingToken
    try {
      const passed = await this.#kind.pass(tenure.hold, inside.terms(lease), fencingToken)
      const holder = this.#renewal.find(tenure.hold.id)
      if (!holder) return
      if (!passed) return this.#renewal.check([holder])
      tenure.queued ||= passed.queued
      // Where replicas have to know it, they do not: the next renewal counts, and is waited for.
      if (!this.#kind.confirm) inside.prolong(holder, passed.deadline)
    } catch (error) {
      if (tenure.recorded === fencingToken) tenure.recorded = recorded
      throw error
    }
  }
}

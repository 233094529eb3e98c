/**
 * Hands the lock from one hold of this client to the next waiter of this client, without a round trip (run.ts says
 * why that is safe), and tells Redis in the background.
 *
 * A hold is handed on only where nothing about it is open: it is held; at least half of its lease surely lasts, and not more
 * than all of it, because a lease that was prolonged further would leave its heir a time that it never asked for; it is the
 * only hold of its owner, whom nobody else can name and who has not begun to re-enter; and no question about it is under way.
 *
 * A release that finds nobody waiting, of a hold that might go on, is sent when the turn of the event loop is over. Two
 * callers who take turns at a lock come back at the same time: the reply of one's release and the grant of the other
 * arrive together, and the caller that releases is often ahead of the one that asks by a few microtasks.
 *
 * What Redis is told, it is told late and seldom: who holds, for `inspect`, and that the new lease has its full length.
 * A run of hand-offs is over in a few milliseconds, so only a holder that still holds then is recorded; most never are. A
 * record that comes late or twice changes nothing, because the hold is the same and an older token never replaces a newer one.
 */
import type { Clock } from '../clock.ts'
import type { Claim, Granted, Kind, Refused } from '../kind.ts'
import type { Hold } from './hold.ts'
import type { Renewal } from './renewal.ts'
import { type Inherited, Run } from './run.ts'

/** Redis is told of a new holder that still holds after this many ms. */
const RECORD_AFTER = 1

/** The waiters of this client, as far as a lock can be handed to one of them. */
export interface Heirs {
  /** The claim of the waiter whose turn it is, if it may have a lease of this length from us. */
  heir(key: string, lease: number): Claim | undefined
  /** Whether anybody of this client waits for the key. */
  awaited(key: string): boolean
  /** The waiter with this claim holds now. */
  inherit(heir: Claim, grant: Inherited): void
}

export interface HandOffListener {
  /** The hold has ended, and the next one has not begun yet. */
  handedOn(hold: Hold): void
  /** Nobody was left to hand the lock to: it has to be released in Redis. */
  abandoned(run: Run): void
  /** Something failed that no promise reports. */
  failed(error: unknown): void
}

export class LocalHandOff {
  readonly #kind: Kind
  readonly #clock: Clock
  readonly #renewal: Renewal
  readonly #heirs: Heirs
  readonly #listener: HandOffListener
  /** The runs that have not ended, by their key. */
  readonly #runs = new Map<string, Run>()

  constructor(kind: Kind, clock: Clock, renewal: Renewal, heirs: Heirs, listener: HandOffListener) {
    this.#kind = kind
    this.#clock = clock
    this.#renewal = renewal
    this.#heirs = heirs
    this.#listener = listener
  }

  /** The run that a grant begins or continues, if it does. `alone`: nobody outside this client is known to wait. */
  runOf(claim: Claim, grant: Granted | Inherited, now: number, alone: boolean): Run | undefined {
    const { key, owner } = claim
    if ('run' in grant) {
      grant.run.owner = owner
      return grant.run
    }
    // An owner with a name may hold the lock elsewhere, too.
    if (!grant.block || owner !== claim.id) return undefined
    // An earlier run that has not ended here has in Redis, which grants the lock anew.
    this.#runs.get(key)?.end()
    const run = new Run(claim, grant, now, alone)
    this.#runs.set(key, run)
    return run
  }

  /** Ends the hold by handing the lock on. False: it has to be released in Redis. */
  pass(hold: Hold): boolean {
    const { run, key, length, deadline } = hold
    if (!run || !this.#goesOn(hold) || !this.#heirs.heir(key, length)) return false
    if (!this.#renewal.live.isAlone(hold) || hold.inQuestion || !hold.end()) return false
    this.#renewal.remove(hold)
    this.#listener.handedOn(hold)
    // A listener may have ended the wait of the heir, and of all others, by closing the client; or be about to re-enter.
    const heir = this.#heirs.heir(key, length)
    if (heir && run.left(this.#clock.now()) > 0) {
      run.timer ??= this.#clock.after(RECORD_AFTER, () => this.#record(run)?.catch(this.#listener.failed))
      this.#heirs.inherit(heir, { granted: true, token: run.issue(), deadline, via: 'handoff', run })
    } else {
      this.end(hold)
      this.#listener.abandoned(run)
    }
    return true
  }

  /** Whether all that is missing for handing it on is somebody who waits. */
  wantsHeir(hold: Hold): boolean {
    return this.#goesOn(hold) && !this.#heirs.awaited(hold.key)
  }

  /**
   * What a request would be told that is refused because a hold of this client has the lock, and may hand it on: for as long
   * as that may be. Undefined: there is none.
   */
  refusal(key: string): Refused | undefined {
    const hold = this.#renewal.live.oldestOf(key)
    const now = this.#clock.now()
    const ttl = hold?.run?.left(now) ?? 0
    if (!hold || ttl <= 0) return undefined
    const holder = { label: hold.claim.label, since: hold.since }
    return { granted: false, sent: now, ttl, position: 0, ticket: '0', holder, clock: 0 }
  }

  /**
   * A caller is about to name this owner to Redis, which has to know by then who holds: when this resolves. Undefined: it
   * does.
   */
  record(key: string, owner: string): Promise<void> | undefined {
    const run = this.#runs.get(key)
    // If the owner holds the lock, the answer may come after its release: an heir would hold it beside who has re-entered.
    if (run?.owner === owner) run.end()
    const recording = run && this.#record(run)
    // Whoever waits for it may give up before.
    recording?.catch(() => {})
    return recording
  }

  /** The lock goes back to Redis, or is lost. */
  end({ run, key }: Hold): void {
    if (!run) return
    run.end()
    run.timer?.cancel()
    if (this.#runs.get(key) === run) this.#runs.delete(key)
  }

  #goesOn({ run, deadline, length }: Hold): boolean {
    if (!run) return false
    const now = this.#clock.now()
    const left = deadline - now
    return run.left(now) > 0 && left >= length / 2 && left <= length
  }

  #record(run: Run): Promise<void> | undefined {
    run.timer?.cancel()
    run.timer = undefined
    const hold = this.#renewal.live.find(run.name.id)
    if (hold && hold.token > run.recorded) {
      // One that fails is repeated when somebody needs it, or after the next hand-off.
      const recording = this.#tell(run, hold).finally(() => {
        if (run.recording === recording) run.recording = undefined
      })
      run.recording = recording
    }
    return run.recording
  }

  async #tell(run: Run, { claim, token }: Hold): Promise<void> {
    const { recorded } = run
    run.recorded = token
    try {
      const passed = await this.#kind.pass(run.name, claim, token)
      const holder = this.#renewal.live.find(run.name.id)
      if (!holder) return
      if (!passed) return this.#renewal.doubt(holder)
      run.queued ||= passed.queued
      // Where replicas have to know it, they do not: the next renewal counts, and is waited for.
      if (!this.#kind.confirm) holder.prolong(passed.deadline)
    } catch (error) {
      if (run.recorded === token) run.recorded = recorded
      throw error
    }
  }
}

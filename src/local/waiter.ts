/** One call that waits for a lock: what it wants, where it stands (states.ts), and what it was told so far. */
import type { Claim, Granted, Refused } from '../kind.ts'
import { arriving, type Place, placeOf, type State } from './states.ts'

export interface Wish {
  readonly claim: Claim
  /** 'once': a single attempt. 'line': unfair. 'queue': fair. */
  readonly mode: 'once' | 'line' | 'queue'
  /** With 'line': join the queue after this many ms; undefined: never. */
  readonly fairAfter: number | undefined
  /** With 'line': after so many ms the caller gives up; undefined: never. */
  readonly timeout?: number | undefined
  /** Whether the owner may hold the lock already, here or elsewhere: then it must not stand behind others. */
  readonly mayReenter: boolean
  /** Nothing is asked before this resolves: what Redis has to know by then. If it rejects, so does the wait. */
  readonly after?: Promise<void> | undefined
}

/**
 * Receives the end of a wait, once: a grant, an error, or neither because the caller has given up. That may be before
 * `Acquirer.start` has returned the waiter.
 */
export type Settle = (end: Granted | Error | undefined, waiter: Waiter) => void

/** A waiter as the `LocalLock` of its key writes it. */
export class WaiterRecord {
  readonly wish: Wish
  /** When the call was made, monotonic ms. */
  readonly since: number
  /** The same in time that this process ran. */
  readonly begun: number
  readonly settle: Settle
  state: State = arriving
  /** Whether the caller has received the `waiting` event: the waiter was refused, or stands behind one that was. */
  parked = false
  /** Attempts that have not been answered: Redis may grant them yet. */
  unanswered = 0
  /** The last refusal: why it still waits. */
  refusal: Refused | undefined
  /** When the last request that found it waiting was sent, or before that the first one: any grant is later. */
  seen: number | undefined
  /** Whether a grant came in a reply when its lease was over. */
  late = false
  /** The token of a grant that was taken away before the waiter heard of it. */
  lost = 0
  /** The largest token of its grants that replicas had to confirm. */
  latest = 0
  /** When replicas did not have a grant of it for the first time. */
  unconfirmedSince: number | undefined
  /** ms from this client's own release to the grant, where that release was what it waited for. */
  handoff: number | undefined
  /** Whether no other client was known to wait when it was granted. */
  alone = false

  constructor(wish: Wish, since: number, begun: number, settle: Settle) {
    this.wish = wish
    this.since = since
    this.begun = begun
    this.settle = settle
  }

  get claim(): Claim {
    return this.wish.claim
  }

  /** Undefined: it does not wait any more. */
  get place(): Place | undefined {
    return placeOf(this.state)
  }

  get waits(): boolean {
    return this.place !== undefined
  }

  get confirming(): boolean {
    return this.state.is === 'confirming'
  }

  /** Whether Redis has been asked to queue it. */
  get inQueue(): boolean {
    const is = this.place?.is
    return is === 'joining' || is === 'queued'
  }
}

/** A waiter as everybody else sees it. */
export type Waiter = Readonly<WaiterRecord>

/** A kind of lock in memory: calls the locks of the store, in the terms of `Kind`. */
import { type LockError, LockQueueFullError } from '../errors.ts'
import type {
  Claim,
  Granted,
  HeartbeatEntry,
  HeartbeatReply,
  Holder,
  HoldName,
  Inspection,
  Kind,
  KindDefinition,
  KindTraits,
  Refused,
  Released,
  RenewalRequest,
  Traits,
} from '../kind.ts'
import { decodeWants } from '../kinds/claim.ts'
import { Disagreements } from '../kinds/disagreements.ts'
import { type Outcome, settle } from '../outcome.ts'
import type { Keys } from '../redis/keys.ts'
import type { Asked } from './entries.ts'
import type { MemoryLock } from './lock.ts'

/** What a kind uses of its store, and of its client's connection to it. */
export interface Locks {
  lock(name: string, key: string, mutex: boolean, keep: boolean): MemoryLock
  now(): number
}
export interface RuleRunner {
  /** `awaited`: while it waits for the store, the call keeps the process alive. A call for a waiter need not. */
  run<T>(call: () => T, awaited?: boolean): Promise<T>
}

export class MemoryKind<State> implements Kind<State> {
  readonly traits: KindTraits<State>
  readonly inspection: Inspection<State>
  readonly #traits: Traits<State>
  readonly #mutex: boolean
  readonly #keys: Keys
  readonly #client: RuleRunner
  readonly #locks: Locks
  readonly #waiterTtl: number
  readonly #disagreements: Disagreements

  constructor(
    { name, traits }: Pick<KindDefinition<State>, 'name' | 'traits'>,
    keys: Keys,
    client: RuleRunner,
    locks: Locks,
    waiterTtl: number,
    warn: (error: LockError) => void,
    background?: KindTraits<State>['background'],
  ) {
    if (!traits) throw new Error('this kind of lock is only in Redis')
    const { noun, heldBy, shared, reentrant } = traits
    this.traits = { noun, heldBy, shared, reentrant, queues: true, background }
    this.#traits = traits
    this.#mutex = name === ''
    this.#keys = keys
    this.#client = client
    this.#locks = locks
    this.#waiterTtl = waiterTtl
    this.#disagreements = new Disagreements(traits, warn)
    this.inspection = {
      inspect: async key => client.run(() => this.#state(key), true),
      isLocked: key => client.run(() => this.#lock(key).locked, true),
      find: async key => client.run(() => (this.#lock(key).used ? this.#state(key) : undefined), true),
      forceRelease: (key, only) =>
        client.run(() => this.#lock(key).take('it was taken away by a forced release', only) > 0, true),
    }
  }

  /** Reserves no tokens: the store is no further away than another waiter of the client. */
  attempt(claim: Claim, mode: 'try' | 'queue', _reserve: number, waits: boolean, to: Outcome<Granted | Refused>): void {
    const asked = this.#client.run((): Granted | Refused => {
      const lock = this.#lock(claim.key, true)
      const asked = this.#asked(claim)
      const answer = lock.ask(asked, mode === 'queue', waits)
      if (typeof answer === 'number') {
        throw new LockQueueFullError(claim.key, answer, this.#expected(lock, asked, lock.placeBehind(asked, answer)))
      }
      if (answer.granted) return answer
      const { among, holder, position } = answer
      if (among) this.#disagreements.check(claim, among, holder.label)
      return { ...answer, expected: this.#expected(lock, asked, position, holder) }
    })
    settle(asked, to)
  }

  tend(key: string, waiters: readonly HeartbeatEntry[]): Promise<HeartbeatReply> {
    const asked = waiters.map(({ claim, ticket }) => ({ asked: this.#asked(claim), ticket: Number(ticket) }))
    return this.#client.run(() => {
      const lock = this.#lock(key, true)
      const tended = lock.tend(asked)
      const expected = tended.waiters.map((place, i) =>
        typeof place === 'number' ? this.#expected(lock, asked[i]!.asked, Math.abs(place), tended.holder) : undefined,
      )
      return { ...tended, expected }
    })
  }

  #expected(lock: MemoryLock, asked: Asked, position: number, holder?: Holder): number | undefined {
    const { pace } = lock
    if (!pace || position === 0) return undefined
    const age = holder ? this.#locks.now() - holder.since : 0
    const { turn, crowd } = lock.turnOf(asked, position) ?? {}
    const at = { position, taken: holder?.taken?.[0], age, turn }
    return this.#traits.expects(at, { ...pace, crowd }, asked.wants)
  }

  leave({ key, id }: HoldName): Promise<void> {
    return this.#client.run(() => this.#lock(key).leave(id))
  }

  giveBack(hold: HoldName): Promise<void> {
    return this.leave(hold)
  }

  release({ key, id }: HoldName, _: number | undefined, to: Outcome<Released>): void {
    settle(
      this.#client.run(() => this.#lock(key).release(id), this.traits.background !== undefined),
      to,
    )
  }

  renew(asked: readonly RenewalRequest[]) {
    const renew = () => asked.map(({ hold: { key, id }, token, ms }) => this.#lock(key).renew(id, token, ms))
    return this.#client.run(renew, this.traits.background !== undefined)
  }

  placeOf(): string {
    return ''
  }

  #lock(key: string, keep = false): MemoryLock {
    return this.#locks.lock(this.#keys.of(key).lock, key, this.#mutex, keep)
  }

  #asked(claim: Claim): Asked {
    const { mode, wants = claim.wants ?? '1/1' } = this.#traits
    const { permits, of, numbers, group } = decodeWants(wants)
    return { ...claim, permits, of, group, mode, numbered: numbers !== undefined, waiterTtl: this.#waiterTtl }
  }

  #state(key: string): State | Promise<State> {
    return this.#traits.stateOf(key, this.#lock(key).found)
  }
}

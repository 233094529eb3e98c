/**
 * Checks the invariants of a history while the history runs. The server reports each decision of a script to these
 * checks, and the clients report the beginning and the end of their holds.
 *
 * I1 says that two owners never hold the lock at once (docs/guarantees.md). The check is stricter: while a client
 * believes that it holds a lock, the server's data must contain the hold. If a forced release or a loss of data has
 * ended a hold, the check skips this hold until the server grants the lock to the hold's id again.
 */

import type { Hold, Loss } from '../../src/key/hold.ts'
import type { Lease } from '../../src/key/lease.ts'
import { type ClaimedGroup, type DecodedClaim, decodeWants } from '../../src/kinds/claim.ts'
import type { ClientWatcher, SimulatedClient } from './client.ts'
import {
  isHeld,
  isReadWrite,
  isShared,
  keptId,
  type LockState,
  largestOf,
  liveHolders,
  liveHolds,
  takenByGroup,
  takenOf,
  writes,
} from './lock-state.ts'
import type { Net } from './network.ts'
import { type Plan, READS } from './plan.ts'
import { Reentries } from './reentries.ts'
import { Runs } from './runs.ts'
import type { Server } from './server.ts'
import { Shares } from './shares.ts'
import type { Answer, Grant, Watcher } from './witness.ts'

/** A grant that the lock must keep until this time, in ms by the server's clock, whatever its caller does. */
interface Kept {
  readonly lock: string
  readonly token: number
  readonly until: number
}

interface Open {
  readonly hold: Hold
  readonly client: SimulatedClient
  readonly lock: string
  /**
   * Whether the grant took longer to arrive than the lease lasts. The client then never counted the lease as held, and
   * a timer will report that the lease is lost.
   */
  readonly stillborn: boolean
}

export class Checks implements Watcher, ClientWatcher {
  readonly #plan: Plan
  readonly #failed: (invariant: string, what: string) => void
  /** All holds of the history, by the ids of their claims. */
  readonly #holds = new Map<string, Hold>()
  /** The holds that are neither released nor lost. */
  readonly #open = new Map<string, Open>()
  readonly #taken = new Set<string>()
  readonly #dropped = new Set<string>()
  readonly #lastToken = new Map<string, number>()
  /** The tokens and the tickets that the server has issued, by the ids of the claims. */
  readonly #tokens = new Map<string, Set<number>>()
  readonly #tickets = new Map<string, Set<number>>()
  /**
   * For each lock: maps the id of each waiter in the queue to a ticket. For a semaphore or a read-write lock, this is
   * the waiter's first ticket. For a mutex, it is the ticket in the waiter's latest heartbeat.
   */
  readonly #queued = new Map<string, Map<string, number>>()
  readonly #abandoned = new Set<string>()
  /** The latest grant to each id, and since when the server has it. */
  readonly #grants = new Map<string, Kept>()
  /**
   * The grants that have a `minHold`, by their ids; of a mutex, without those whose owner has re-entered. If the first hold
   * of such an owner is released before the others, the last one has its `minHold`, but only if it is released, too.
   */
  readonly #kept = new Map<string, Kept>()
  /** Tokens of mutexes whose owner has re-entered. */
  readonly #entered = new Set<number>()
  /** For each reader, how many writers were granted the lock since the reader was queued. */
  readonly #turns = new Map<string, number>()
  /** For read-write locks: the ids of claims that write. */
  readonly #writing = new Set<string>()
  /** The size of each semaphore. If granted claims stated different sizes, the largest one counts. */
  readonly #largest = new Map<string, number>()
  /**
   * The ids whose hold or queue place is still on the server, although their client no longer wants it. Maps each id to
   * the time at which this was first seen.
   */
  #orphans = new Map<string, number>()
  readonly #clients = new Map<string, SimulatedClient>()
  readonly #runs: Runs
  readonly #shares: Shares
  readonly reentries: Reentries
  readonly #now: () => number

  /** `now` returns the virtual time, in ms. */
  constructor(plan: Plan, now: () => number, failed: (invariant: string, what: string) => void) {
    this.#plan = plan
    this.#now = now
    this.#failed = failed
    this.#runs = new Runs(failed)
    this.#shares = new Shares(plan.settings.tokenMemory)
    this.reentries = new Reentries(Number.isFinite(plan.prompt), failed, id => {
      const { is } = this.#holds.get(id)?.state ?? {}
      return is === 'releasing' || is === 'released'
    })
  }

  get openLeases(): number {
    return this.#open.size
  }

  /**
   * How many leases were handed off within a client, without asking the server. For read-write locks: how often an
   * owner re-entered, and how often a request was refused because its owner would wait for itself.
   */
  get counts() {
    return { handedOn: this.#runs.count, reentered: this.reentries.granted, deadlocks: this.reentries.deadlocks }
  }

  readonly watcher: Watcher = this

  /** On one server, the checks of the server's decisions cover forced releases. */
  forcing(_key: string, _client: SimulatedClient) {
    return () => {}
  }

  /**
   * Whether a forced release or a loss of data has ended the lease's hold. The answer stays true if the server grants
   * the lock to the hold's id again.
   */
  tookAway(lease: Lease): boolean {
    const { id } = this.#holdOf(lease).name
    return this.#taken.has(id) || [...(this.#tokens.get(id) ?? [])].some(token => token > lease.fencingToken)
  }

  /** Registers a client by its name. The client's ids begin with this name. */
  know(client: SimulatedClient): void {
    this.#clients.set(client.process.name, client)
  }

  granted(lock: string, grant: Grant): void {
    const { token, lastToken, claim, state, now } = grant
    const { id, owner } = claim
    this.#follows(lock, token)
    this.#issued(id, token)
    this.#grants.set(id, { lock, token, until: now })
    this.#keeps(state, now, lock)
    this.#runs.granted(id, lock, token, lastToken)
    if (isReadWrite(lock)) this.reentries.agree(lock, state, now)
    else if (isShared(lock)) this.#fits(lock, grant)
    for (const open of this.#open.values()) {
      if (open.lock !== lock || open.hold.owner === owner) continue
      if (!isShared(lock) || writes(claim) || this.#writing.has(open.hold.name.id)) this.#mayEnd(open, id)
    }
    this.#inOrder(lock, grant)
    this.#queued.get(lock)?.delete(id)
    // The claim no longer waits, so its count of writers ends. If the grant lapses before the client learns of it, the
    // waiter is queued again. That is a new wait, so its count begins at zero.
    this.#turns.delete(id)
  }

  reentered(lock: string, id: string, token: number): void {
    this.#issued(id, token)
    if (!isShared(lock)) this.#entered.add(token)
    this.#queued.get(lock)?.delete(id)
  }

  asked(lock: string, answer: Answer): void {
    this.reentries.asked(answer)
    this.reentries.agree(lock, answer.after, answer.now)
    if (writes(answer.claim)) this.#writing.add(answer.claim.id)
  }

  /** After a hand-off within a client: checks that the client has issued the token that the server now records. */
  passed(lock: string, hold: string, token: number): void {
    if (token > this.#runs.issued(hold))
      this.#failed('I2', `${token} is recorded for ${lock}, but its client has not issued it`)
  }

  told(hold: string): void {
    this.#runs.told(hold)
  }

  dropped(id: string): void {
    this.#dropped.add(id)
  }

  taken(ids: readonly string[]): void {
    for (const id of ids) this.#taken.add(id)
    for (const [id, { token }] of this.#kept) {
      if (ids.some(each => each === keptId(id) || this.#tokens.get(each)?.has(token))) this.#kept.delete(id)
    }
  }

  joined(id: string, ticket: number, lock: string, again: boolean): void {
    const known = this.#tickets.get(id)
    if (again && !known?.has(ticket)) this.#failed('I3', `${id} joins again with another ticket: ${ticket}`)
    if (known) known.add(ticket)
    else this.#tickets.set(id, new Set([ticket]))
    const queue = this.#queued.get(lock) ?? new Map<string, number>()
    this.#queued.set(lock, queue)
    if (!queue.has(id) || (again && !isShared(lock))) queue.set(id, ticket)
  }

  left(id: string): void {
    for (const queue of this.#queued.values()) queue.delete(id)
  }

  acquired(client: SimulatedClient, hold: Hold): void {
    const lock = client.lockOf(hold.key)
    const { claim, name, token } = hold
    const { id } = claim
    this.#holds.set(id, hold)
    const stillborn = remaining(hold, client) === 0
    if (name.id !== id) {
      this.#runs.inherited(client, hold, this.#fairWaitersOf(client, lock), this.#now())
      if (!this.#taken.has(name.id)) {
        this.#follows(lock, token)
        for (const other of this.#open.values()) if (other.lock === lock) this.#mayEnd(other, id)
      }
    } else if (this.#tokens.get(id)?.has(token)) this.#runs.began(hold, this.#now())
    else this.#failed('I2', `${id} has the token ${token}, which it was never granted`)
    this.#open.set(id, { hold, client, lock, stillborn })
  }

  ended({ claim, state }: Hold): void {
    if (state.is === 'released') this.#open.delete(claim.id)
  }

  lost({ claim, signal }: Hold, loss: Loss): void {
    if (signal.reason !== loss) this.#failed('I8', `${claim.id} is lost and its signal has not aborted`)
    this.#open.delete(claim.id)
  }

  released(lease: Lease, live: boolean): void {
    const hold = this.#holdOf(lease)
    const { id } = hold.name
    if (live && !this.#runs.handedOn(hold) && !this.#dropped.has(id) && !this.#taken.has(id)) {
      this.#failed('I5', `the release of ${lease.id} reports that it ended the hold, but it did not`)
    }
  }

  /**
   * Records that a release failed, or that its answer came too late. The server may then keep the hold until the lease
   * ends.
   */
  abandoned(lease: Lease): void {
    this.#abandoned.add(this.#holdOf(lease).name.id)
  }

  /** Called when a caller gets its lease. A grant that no caller gets is given back, whatever its `minHold` is. */
  used(lease: Lease, minHold: number): void {
    const { id } = this.#holdOf(lease).name
    const { lock, token, until } = this.#grants.get(id) ?? {}
    if (minHold === 0 || lease.via === 'reentry' || token !== lease.fencingToken || this.#taken.has(id)) return
    this.#kept.set(id, { lock: lock!, token, until: until! + minHold })
  }

  /** Checks that the server still has each hold whose `minHold` has not passed. */
  #keeps(state: LockState, now: number, lock: string): void {
    for (const [id, { lock: own, token, until }] of this.#kept) {
      if (until <= now || this.#entered.has(token)) this.#kept.delete(id)
      else if (
        own === lock &&
        !(isShared(lock) ? liveHolders(state, now) : [state.holder]).some(each => each?.token === token)
      )
        this.#failed(
          'I1',
          `the server no longer has ${id}, whose minHold lasts for another ${(until - now).toFixed(3)} ms`,
        )
    }
  }

  /**
   * Runs after each event. Checks that the server has every hold that a client believes it has. If a client no longer
   * wants a hold or a queue place, checks that it is soon gone from the server.
   */
  look(now: number, nets: readonly Net[]): void {
    const [{ server, weather }] = nets as [Net]
    this.#lookForOrphans(now, server, weather.refusal !== undefined)
    for (const { lock } of this.#kept.values()) this.#keeps(server.lock(lock), server.now, lock)
    for (const [id, { hold, client, lock }] of this.#open) {
      const { is } = hold.state
      if (client.process.dead || is === 'released' || is === 'lost') this.#open.delete(id)
      else {
        const { name } = hold
        const left = remaining(hold, client)
        if (left === 0 || this.#taken.has(name.id) || isHeld(server.lock(lock).holds, name.id, server.now)) continue
        this.#failed(
          'I1',
          `${id} believes that it holds for another ${left.toFixed(3)} ms, but the server does not know the hold`,
        )
      }
    }
  }

  /**
   * Checks I7: the server must soon forget each hold and each live place in a queue that its client no longer wants.
   * This is required only while the client runs and reaches the server.
   */
  #lookForOrphans(now: number, server: Server, refusing: boolean): void {
    if (now < this.#plan.tidyFrom) return
    if (refusing) this.#orphans.clear()
    const found = new Map<string, number>()
    for (const state of server.locks) {
      const live = state.queue.filter(({ liveUntil }) => liveUntil >= server.now).map(({ claim }) => claim.id)
      for (const id of [...liveHolds(state, server.now), ...live]) {
        const client = this.#clientOf(id)
        if (!client?.open || !client.process.awake || client.wants(id) || this.#abandoned.has(id)) continue
        const since = this.#orphans.get(id) ?? now
        found.set(id, since)
        if (now - since > this.#plan.forgotten)
          this.#failed('I7', `the server has kept ${id} since ${since.toFixed(3)}, although nobody wants it`)
      }
    }
    this.#orphans = found
  }

  /**
   * Called for an open hold when the lock is granted to the claim `id`, which belongs to another owner. Checks that the
   * hold has ended, and that its client has reported the loss.
   */
  #mayEnd({ hold, client, stillborn }: Open, id: string): void {
    if (client.process.dead || stillborn || this.#taken.has(hold.name.id)) return
    const left = remaining(hold, client)
    const holder = hold.claim.id
    if (left > 0) this.#failed('I1', `${id} is granted while ${holder} holds for another ${left.toFixed(3)} ms`)
    if (hold.state.is === 'held' && client.process.settled && !client.closed) {
      this.#failed('I8', `${id} is granted before the loss of ${holder} was reported`)
    }
  }

  /**
   * Checks that the holds on the server together take no more permits than exist. The holds of the clients need no such
   * check, because `look` checks that the server has every hold that a client believes it has.
   */
  #fits(lock: string, { claim, state, now }: Grant): void {
    // One script call may admit several waiters and record their holds together. Their claims may state different
    // numbers of permits. The largest of these numbers counts.
    const largest = Math.max(claim.wants![1], largestOf(state), this.#largest.get(lock) ?? 0)
    this.#largest.set(lock, largest)
    const taken = takenOf(state, now)
    if (taken > largest) this.#failed('I1', `with ${claim.id}, ${taken} of ${largest} are taken`)
    if (claim.group) this.#fitsGroup(lock, claim.group, state, now)
  }

  /** Checks that the holds of a group take no more permits than the largest limit that a granted claim of it stated. */
  #fitsGroup(
    lock: string,
    { name, limit = Number.POSITIVE_INFINITY }: ClaimedGroup,
    state: LockState,
    now: number,
  ): void {
    const place = `${lock} ${name}`
    const limits = liveHolders(state, now).flatMap(({ claim: { group } }) =>
      group?.name === name ? [group.limit] : [],
    )
    const stated = limits.map(each => each ?? Number.POSITIVE_INFINITY)
    const largest = Math.max(limit, ...stated, this.#largest.get(place) ?? 0)
    this.#largest.set(place, largest)
    const taken = takenByGroup(state, name, now)
    if (taken > largest) this.#failed('I1', `the group ${name} has taken ${taken} of ${largest}`)
  }

  #inOrder(lock: string, grant: Grant): void {
    const { claim, state, now } = grant
    const { id } = claim
    const queued = this.#queued.get(lock)
    const own = queued?.get(id) ?? Number.POSITIVE_INFINITY
    // In a read-write lock, the order of tickets counts only between two writers. But in every lock, a claim that is
    // not in the queue must wait for all queued claims.
    // In a semaphore, the order of tickets counts inside a group, and a full group is passed.
    const ordered = (waiter: DecodedClaim) =>
      isReadWrite(lock)
        ? own === Number.POSITIVE_INFINITY || (writes(claim) && writes(waiter))
        : claim.group?.name === waiter.group?.name
    if (isReadWrite(lock) && writes(claim)) this.#writersTurn(lock)
    else if (isReadWrite(lock)) this.#readersTurn(grant, own)
    for (const { claim: waiter, ticket, liveUntil } of state.queue) {
      if (ordered(waiter) && ticket < own && liveUntil >= now && waiter.id !== id) {
        this.#failed('I3', `${id} is granted before ${waiter.id}, which is ahead in the queue`)
      }
    }
    if (!this.#plan.orderly || isReadWrite(lock)) return
    const missed = isShared(lock) && this.#shares.granted(lock, grant, own, other => this.#clientOf(other))
    if (missed) this.#failed('I3', `${id} is granted before ${missed}, although its group has had its share`)
    for (const [other, ticket] of queued ?? []) {
      const client = this.#clientOf(other)
      const call = client?.calling.get(other)
      // The group of a waiter whose caller has given up is not known any more.
      const sameGroup = !isShared(lock) || (call && decodeWants(call.wants ?? '').group?.name === claim.group?.name)
      if (ticket < own && client?.open && sameGroup)
        this.#failed('I3', `${id} is granted before ${other}, which has waited longer`)
    }
  }

  /**
   * Fails if a reader is admitted while other readers hold the lock and a live writer with a smaller ticket waits. But
   * if a writer held the lock just before this grant, the readers' turn has come: they may be admitted before the next
   * writer.
   */
  #readersTurn({ claim: { id }, before, state, now }: Grant, own: number): void {
    if ([...before.holders.values()].some(({ claim }) => writes(claim))) return
    const reads = liveHolders(before, now).find(({ claim }) => state.holders.has(claim.id))
    const passed = state.queue.find(({ claim, ticket, liveUntil }) => writes(claim) && ticket < own && liveUntil >= now)
    if (reads && passed)
      this.#failed('I3', `${id} is admitted beside ${reads.claim.id}, past ${passed.claim.id}, which waits to write`)
  }

  /** Checks that each queued reader waits for at most one writer's turn. */
  #writersTurn(lock: string): void {
    if (!this.#plan.orderly) return
    for (const id of this.#queued.get(lock)?.keys() ?? []) {
      const client = this.#clientOf(id)
      if (!client?.open || client.calling.get(id)?.wants !== READS) continue
      const turns = (this.#turns.get(id) ?? 0) + 1
      this.#turns.set(id, turns)
      if (turns > 1) this.#failed('I3', `${id} waits to read, and ${turns} writers were granted the lock meanwhile`)
    }
  }

  /** Returns the client's waiters that are in the queue and whose callers have not given up. */
  #fairWaitersOf(client: SimulatedClient, lock: string): string[] {
    const { calling } = client
    return [...(this.#queued.get(lock)?.keys() ?? [])].filter(id => this.#clientOf(id) === client && calling.has(id))
  }

  #follows(lock: string, token: number): void {
    const last = this.#lastToken.get(lock) ?? 0
    if (token <= last) this.#failed('I2', `${token} after ${last}`)
    this.#lastToken.set(lock, token)
  }

  #clientOf(id: string): SimulatedClient | undefined {
    return this.#clients.get(id.slice(0, id.indexOf(':')))
  }

  #issued(id: string, token: number): void {
    // `#taken` excuses the early end of a hold that was taken away. A new grant to the same id begins a new hold, which
    // has no such excuse. But while a lease of the earlier grant is still open, that lease needs the excuse.
    if (!this.#open.has(id)) this.#taken.delete(id)
    const tokens = this.#tokens.get(id)
    if (tokens) tokens.add(token)
    else this.#tokens.set(id, new Set([token]))
  }

  #holdOf({ id }: Lease): Hold {
    return this.#holds.get(id)!
  }
}

/** Returns how many ms of the hold are left by the client's clock. */
function remaining(hold: Hold, { process }: SimulatedClient): number {
  return hold.remaining(process.now())
}

/**
 * The invariants of a history, checked while it runs: it is told what the scripts decide and what the clients believe.
 *
 * I1 is checked in its strongest form: whatever a client believes to hold, the server records as held by it; then no two
 * owners can. Exempt are holds that were taken away on the server (force-release, lost data), until they are granted anew.
 */
import type { LockLostError } from '../../src/errors.ts'
import { inside, type Lease } from '../../src/lease/lease.ts'
import type { ClientWatcher, SimulatedClient } from './client.ts'
import { isLive, type LockScript, parseEntry, type Watcher } from './lock-state.ts'
import type { Plan } from './plan.ts'
import type { Server } from './server.ts'

interface Open {
  readonly lease: Lease
  readonly client: SimulatedClient
  readonly lock: string
  /** Its grant was under way for longer than its lease: nobody ever believed in it, and the timer will say so. */
  readonly stillborn: boolean
}

export class Checks implements Watcher, ClientWatcher {
  readonly #plan: Plan
  readonly #failed: (invariant: string, what: string) => void
  /** Leases that are neither released nor lost. */
  readonly #open = new Map<string, Open>()
  readonly #taken = new Set<string>()
  readonly #dropped = new Set<string>()
  readonly #lastToken = new Map<string, number>()
  /** Tokens granted to each id, and tickets it was given. */
  readonly #tokens = new Map<string, Set<number>>()
  readonly #tickets = new Map<string, Set<number>>()
  /** For each lock the waiters that have joined and are not yet served, with the ticket they had first. */
  readonly #queued = new Map<string, Map<string, number>>()
  readonly #abandoned = new Set<string>()
  /** Since when the server keeps something for nobody, by id. */
  #orphans = new Map<string, number>()
  readonly #clients = new Map<string, SimulatedClient>()

  constructor(plan: Plan, failed: (invariant: string, what: string) => void) {
    this.#plan = plan
    this.#failed = failed
  }

  get openLeases(): number {
    return this.#open.size
  }

  /** Ids begin with the name of their client. */
  know(client: SimulatedClient): void {
    this.#clients.set(client.process.name, client)
  }

  granted(script: LockScript, id: string, owner: string): void {
    const { lock, token } = script
    if (token! <= (this.#lastToken.get(lock) ?? 0)) this.#failed('I2', `${token} after ${this.#lastToken.get(lock)}`)
    this.#lastToken.set(lock, token!)
    this.#issued(id, token!)
    for (const open of this.#open.values()) {
      if (open.lock === lock && open.lease.owner !== owner) this.#mayEnd(open, id)
    }
    this.#inOrder(script, id)
    this.#queued.get(lock)?.delete(id)
  }

  reentered({ lock, token }: LockScript, id: string): void {
    this.#issued(id, token!)
    this.#queued.get(lock)?.delete(id)
  }

  dropped(id: string): void {
    this.#dropped.add(id)
  }

  taken(ids: readonly string[]): void {
    for (const id of ids) this.#taken.add(id)
  }

  joined(id: string, ticket: number, lock: string, again: boolean): void {
    const known = this.#tickets.get(id)
    if (again && !known?.has(ticket)) this.#failed('I3', `${id} joins again with another ticket: ${ticket}`)
    if (known) known.add(ticket)
    else this.#tickets.set(id, new Set([ticket]))
    const queue = this.#queued.get(lock) ?? new Map<string, number>()
    this.#queued.set(lock, queue)
    if (!queue.has(id)) queue.set(id, ticket)
  }

  left(id: string): void {
    for (const queue of this.#queued.values()) queue.delete(id)
  }

  acquired(client: SimulatedClient, lease: Lease): void {
    if (!this.#tokens.get(lease.id)?.has(lease.fencingToken)) {
      this.#failed('I2', `${lease.id} has the token ${lease.fencingToken}, which it was never granted`)
    }
    const stillborn = !lease.held
    this.#open.set(lease.id, { lease, client, lock: client.lockOf(lease.key), stillborn })
  }

  lost(lease: Lease, error: LockLostError): void {
    if (lease.signal.reason !== error) this.#failed('I8', `${lease.id} is lost and its signal has not aborted`)
    this.#open.delete(lease.id)
  }

  /** The answer of a release. */
  released(lease: Lease, live: boolean): void {
    if (live && !this.#dropped.has(lease.id) && !this.#taken.has(lease.id)) {
      this.#failed('I5', `the release of ${lease.id} says that it ended it; it did not`)
    }
  }

  /** A release that failed, or whose answer did not matter any more: what the server has ends with its lease. */
  abandoned(lease: Lease): void {
    this.#abandoned.add(lease.id)
  }

  /** After each event: no client believes in a hold that the server does not know, and the reverse not for long. */
  look(now: number, server: Server, refusing: boolean): void {
    this.#lookForOrphans(now, server, refusing)
    for (const [id, { lease, client, lock }] of this.#open) {
      const state = inside.state(lease)
      if (client.process.dead || state === 'released' || state === 'lost') this.#open.delete(id)
      else if (lease.held && !this.#taken.has(id) && !server.keysOf(lock).holds(server.now).includes(id)) {
        this.#failed(
          'I1',
          `${id} believes to hold for another ${lease.remaining().toFixed(3)} ms, unknown to the server`,
        )
      }
    }
  }

  /** I7: holds and live places in the queue that nobody wants, of clients that could have taken them back. */
  #lookForOrphans(now: number, server: Server, refusing: boolean): void {
    if (now < this.#plan.tidyFrom) return
    if (refusing) this.#orphans.clear()
    const found = new Map<string, number>()
    for (const keys of server.locks.values()) {
      const places = keys.queue.map(({ entry, ticket }) => ({ ...parseEntry(entry), ticket }))
      const live = places.filter(place => isLive(keys, place, place.ticket, server.now)).map(({ id }) => id)
      for (const id of [...keys.holds(server.now), ...live]) {
        const client = this.#clientOf(id)
        if (!client?.open || !client.process.awake || client.wants(id) || this.#abandoned.has(id)) continue
        const since = this.#orphans.get(id) ?? now
        found.set(id, since)
        if (now - since > this.#plan.forgotten)
          this.#failed('I7', `the server keeps ${id} since ${since.toFixed(3)} for nobody`)
      }
    }
    this.#orphans = found
  }

  /** The server grants to another owner. */
  #mayEnd({ lease, client, stillborn }: Open, id: string): void {
    if (client.process.dead || stillborn || this.#taken.has(lease.id)) return
    if (lease.held)
      this.#failed('I1', `${id} is granted while ${lease.id} holds for ${lease.remaining().toFixed(3)} ms`)
    if (inside.state(lease) === 'held' && client.process.awake && !client.closed) {
      this.#failed('I8', `${id} is granted before the loss of ${lease.id} was told`)
    }
  }

  #inOrder({ keys, lock, now }: LockScript, id: string): void {
    const queued = this.#queued.get(lock)
    const own = queued?.get(id) ?? Number.POSITIVE_INFINITY
    for (const { entry, ticket } of keys.queue) {
      const waiter = parseEntry(entry)
      if (ticket < own && isLive(keys, waiter, ticket, now) && waiter.id !== id) {
        this.#failed('I3', `${id} is granted before ${waiter.id}, which is ahead in the queue`)
      }
    }
    if (!this.#plan.orderly) return
    for (const [other, ticket] of queued ?? []) {
      if (ticket < own && this.#clientOf(other)?.open)
        this.#failed('I3', `${id} is granted before ${other}, which waits longer`)
    }
  }

  #clientOf(id: string): SimulatedClient | undefined {
    return this.#clients.get(id.slice(0, id.indexOf(':')))
  }

  #issued(id: string, token: number): void {
    // A lease that was made of the earlier grant learns of its end all the same.
    if (!this.#open.has(id)) this.#taken.delete(id)
    const tokens = this.#tokens.get(id)
    if (tokens) tokens.add(token)
    else this.#tokens.set(id, new Set([token]))
  }
}

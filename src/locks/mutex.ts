/**
 * The mutual-exclusion lock: what the scripts of lua/ say, in the terms of `Primitive`. No waiting and no time-outs here.
 */
import { surelyUntil } from '../clock.ts'
import type { Claim, Granted, Hold, Primitive, Queued, Refused, Released, Tended, Via } from '../primitive.ts'
import { type Keys, namesOf } from '../redis/keys.ts'
import type { Scripts } from '../redis/scripts.ts'

export interface MutexSettings {
  /** The client's inbox name, with which all its ids begin. */
  readonly clientId: string
  readonly label: string
  /** ms */
  readonly tokenMemory: number
  /** ms */
  readonly waiterTtl: number
}

/** Locks renewed by one script call: it bounds the time for which the server does nothing else. */
const RENEWALS_PER_CALL = 200
/** Waiters tended by one script call; lua/tend.lua relies on it. */
const WAITERS_PER_CALL = 500

export class Mutex implements Primitive {
  readonly #scripts: Scripts
  readonly #keys: Keys
  readonly #settings: MutexSettings

  constructor(scripts: Scripts, keys: Keys, settings: MutexSettings) {
    this.#scripts = scripts
    this.#keys = keys
    this.#settings = settings
  }

  async attempt(claim: Claim, queue: boolean): Promise<Granted | Refused> {
    const { label, tokenMemory, waiterTtl } = this.#settings
    const names = this.#keys.of(claim.key)
    const { status, values, sent } = await this.#scripts.run('acquire', names, {
      id: claim.id,
      self: claim.owner,
      tag: label,
      lease: claim.lease,
      memory: tokenMemory,
      inbox: this.#keys.inboxPrefix(names.lock),
      entry: queue ? this.#entry(claim) : undefined,
      ttl: queue ? waiterTtl : undefined,
      headStart: queue ? micros(claim.headStart) : undefined,
    })
    if (status !== 'refused') {
      const [token, ttl] = values as [string, number]
      return grantedUntil(token, surelyUntil(sent, ttl), grantedVia[status])
    }
    const [ttl, position, ticket, of, heldFor, clock] = values as [number, number, string, string, number, string]
    return { granted: false, sent, ttl, position, ticket, holder: { label: of, heldFor }, clock: Number(clock) }
  }

  async tend(key: string, waiters: readonly Queued[]): Promise<Tended> {
    const calls: Promise<Tended>[] = []
    for (let i = 0; i < waiters.length; i += WAITERS_PER_CALL) {
      calls.push(this.#tendSome(key, waiters.slice(i, i + WAITERS_PER_CALL)))
    }
    const parts = await Promise.all(calls)
    const last = parts[parts.length - 1] as Tended
    return { ...last, sent: parts[0]?.sent ?? last.sent, waiters: parts.flatMap(part => part.waiters) }
  }

  async #tendSome(key: string, waiters: readonly Queued[]): Promise<Tended> {
    const { tokenMemory, waiterTtl } = this.#settings
    const names = this.#keys.of(key)
    const { values, sent } = await this.#scripts.run('tend', names, {
      inbox: this.#keys.inboxPrefix(names.lock),
      memory: tokenMemory,
      ttl: waiterTtl,
      waiters: waiters.flatMap(({ claim, ticket }) => [claim.id, this.#entry(claim), ticket]),
    })
    type Place = number | [token: string, ttl: number, via: Via]
    const [ttl, label, heldFor, clock, ...places] = values as [number, string, number, string, ...Place[]]
    return {
      sent,
      ttl,
      holder: { label, heldFor },
      clock: Number(clock),
      waiters: places.map(place =>
        typeof place === 'number' ? place : grantedUntil(place[0], surelyUntil(sent, place[1]), place[2]),
      ),
    }
  }

  async leave(claim: Claim): Promise<void> {
    await this.#leave(this.#keys.of(claim.key).lock, claim.id, this.#entry(claim))
  }

  /** Gives back a grant that came for an id nobody knows, on a lock that is known by its key in Redis only. */
  async giveBack(lock: string, id: string): Promise<void> {
    await this.#leave(lock, id, undefined)
  }

  async #leave(lock: string, id: string, entry: string | undefined): Promise<void> {
    const memory = this.#settings.tokenMemory
    await this.#scripts.run('leave', namesOf(lock), { id, inbox: this.#keys.inboxPrefix(lock), memory, entry })
  }

  async release(hold: Hold): Promise<Released> {
    const { clientId, tokenMemory } = this.#settings
    const names = this.#keys.of(hold.key)
    const { status, values, sent, repeated } = await this.#scripts.run('release', names, {
      id: hold.id,
      client: clientId,
      inbox: this.#keys.inboxPrefix(names.lock),
      memory: tokenMemory,
    })
    if (status === 'passed') {
      const [id, token, ttl] = values as [string, string, number]
      return { ended: true, successor: { id, grant: grantedUntil(token, surelyUntil(sent, ttl), 'handoff') } }
    }
    // A repeated call that finds nothing: the earlier one, whose answer was lost, has ended the hold.
    return { ended: status === 'released' || repeated }
  }

  async renew(holds: readonly { readonly hold: Hold; readonly ms: number }[]): Promise<(number | undefined)[]> {
    const calls: Promise<(number | undefined)[]>[] = []
    for (let i = 0; i < holds.length; i += RENEWALS_PER_CALL) {
      calls.push(this.#renewSome(holds.slice(i, i + RENEWALS_PER_CALL)))
    }
    return (await Promise.all(calls)).flat()
  }

  async #renewSome(holds: readonly { readonly hold: Hold; readonly ms: number }[]): Promise<(number | undefined)[]> {
    const { values, sent } = await this.#scripts.run(
      'renew',
      { locks: holds.map(({ hold }) => this.#keys.of(hold.key).lock) },
      { memory: this.#settings.tokenMemory, asked: holds.flatMap(({ hold, ms }) => [hold.id, ms]) },
    )
    return holds.map((_, i) => {
      const ttl = values[i]
      return typeof ttl === 'number' ? surelyUntil(sent, ttl) : undefined
    })
  }

  /** A waiter's entry in the queue: everything that a grant needs. lua/include/promote.lua takes it apart. */
  #entry({ id, owner, lease, headStart }: Claim): string {
    const { label, waiterTtl } = this.#settings
    return `${id} ${lease} ${waiterTtl} ${micros(headStart)} ${Buffer.byteLength(owner)} ${owner}${label}`
  }
}

const grantedVia = { granted: 'immediate', succeeded: 'expiry', reentered: 'reentry' } as const

function grantedUntil(token: string, deadline: number, via: Via): Granted {
  return { granted: true, token: Number(token), deadline, via }
}

function micros(ms: number): number {
  return Math.round(ms * 1000)
}

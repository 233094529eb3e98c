/**
 * Tests that src/memory/lock.ts and the scripts of lua/ are the same rule. The same random calls, at the same times, go to
 * a lock in memory and to the scripts in a Redis of the simulation. Both have to give the same answers and the same grants,
 * in the same order, and to show the same lock.
 *
 * `BATON_RULE_SEEDS=2000` runs more sequences than `npm test` does.
 */
import { describe, expect, test } from 'vitest'
import type { Claim, Granted, Kind, KindDefinition, Parts, Refused, Released, Reply } from '../../src/kind.ts'
import { mutex } from '../../src/kinds/mutex/mutex.ts'
import { reading, writing } from '../../src/kinds/permits/read-write.ts'
import { semaphore } from '../../src/kinds/permits/semaphore.ts'
import type { QueuedKind } from '../../src/kinds/queued-kind.ts'
import type { LockState } from '../../src/lock-state.ts'
import { MemoryKind } from '../../src/memory/kind.ts'
import { type Hub, MemoryLock } from '../../src/memory/lock.ts'
import type { Outcome } from '../../src/outcome.ts'
import { Keys, Namespace } from '../../src/redis/keys.ts'
import { textOf } from '../../src/redis/scripts.ts'
import { Random } from '../kit/random.ts'
import { FakeClock } from '../unit/fake-clock.ts'
import { FakeRedis } from './redis/redis.ts'

const SEEDS = Number(process.env['BATON_RULE_SEEDS'] ?? 20)
const STEPS = 60
const WAITER_TTL = 900
const START = 1_750_000_000_000
const KEY = 'k'
const space = new Namespace('lock:', false)
const clients = ['a', 'b', 'c'].map(name => name.padEnd(12, '_'))

// A kind of lock has definitions of several types; each is only called here.
type Definition = KindDefinition<LockState, never>

/** One of the two implementations. */
interface Side {
  readonly kinds: readonly Kind<LockState>[]
  /** The grants of which messages have told, since they were last looked at. */
  readonly told: [id: string, token: number][]
  /** By the ids of callers. */
  readonly tokens: Map<string, number>
  readonly tickets: Map<string, string>
  /** Ends the holds that have lapsed, and admits who fits. Which calls do that by the way differs. */
  settle(): Promise<unknown>
}

class Clock {
  /** ms since `START`. */
  now = 0
  steps = 0

  /**
   * What ends in this ms is live in Redis, and over in memory. So the time in memory falls behind by a little in each step:
   * then it is live there, too.
   */
  get inMemory(): number {
    return this.now - this.steps * 2 ** -20
  }

  get micros(): number {
    return (START + this.now) * 1_000
  }
}

function inMemory(definitions: readonly Definition[], clock: Clock): Side {
  const told: Side['told'] = []
  const locks = new Map<string, MemoryLock>()
  let last = 0
  const hub: Hub = {
    // Leases are ended by the calls that find them lapsed, as in Redis.
    clock: { background: new FakeClock() },
    now: () => clock.inMemory,
    tick: () => (last = Math.max(clock.micros, last + 1)),
    timeOf: ticket => (ticket - START * 1_000) / 1_000 - 1e-4,
    get last() {
      return last
    },
    reaches: () => true,
    won: (id, { token }) => told.push([id, token]),
    taken() {},
    free() {},
    entered() {},
    ends() {},
    idle() {},
  }
  const lock = (name: string, key: string, isMutex: boolean) => {
    const known = locks.get(name) ?? new MemoryLock(name, key, isMutex, hub)
    locks.set(name, known)
    return known
  }
  const client = { run: async <T>(call: () => T) => call() }
  const kinds = definitions.map(kind => {
    return new MemoryKind(
      kind,
      new Keys(space, kind),
      client,
      { lock, now: () => clock.inMemory },
      WAITER_TTL,
      () => {},
    )
  })
  return { kinds, told, tokens: new Map(), tickets: new Map(), settle: () => kinds[0]!.tend(KEY, []) }
}

function byScripts(definitions: readonly Definition[], clock: Clock): Side {
  const told: Side['told'] = []
  const redis = new FakeRedis(clock, (_, text) => {
    const [word, ids = '', tokens = ''] = text.split(' ')
    const all = tokens.split(',')
    if (word === 'handoff' || word === 'expiry')
      for (const [i, id] of ids.split(',').entries()) told.push([id, Number.parseInt(all[i]!, 10)])
    return 1
  })
  const kinds = definitions.map(kind => {
    const settings = { cluster: false, inboxes: 'lock:inbox:', tokenMemory: 600_000 }
    const post = (
      name: string,
      { all }: { all: string[] },
      args: unknown[],
      read: (reply: Reply) => unknown,
      to: Outcome<unknown>,
    ) => {
      const end = args.indexOf(undefined)
      const argv = args.slice(0, end < 0 ? args.length : end).map(String)
      const reply = redis.eval(textOf((kind.scripts as Record<string, string>)[name]!, settings), all, argv)
      const values: unknown[] = typeof reply === 'string' ? reply.split(' ') : [...(reply as unknown[])]
      const status = values.shift() as string
      const result = async () => read({ status, values, sent: clock.now, repeated: false })
      result().then(to.done, to.failed)
    }
    const run = (name: string, keys: never, args: never, read = (reply: Reply): unknown => reply) =>
      new Promise((done, failed) => post(name, keys, args, read, { done, failed }))
    let ids = 0
    const newId = () => `${clients[0]}${String(ids++).padStart(16, 'x')}`
    const scripts = { run, post } as unknown as Parts<never>['scripts']
    return kind.make({
      names: new Keys(space, kind),
      scripts,
      replicated: undefined,
      waiterTtl: WAITER_TTL,
      warn() {},
      newId,
    })
  })
  return { kinds, told, tokens: new Map(), tickets: new Map(), settle: () => (kinds[0] as QueuedKind).sweep(KEY) }
}

interface Caller {
  claim: Claim
  /** Which of the kinds it calls. */
  readonly of: number
}

/** What a call is answered, in terms in which both sides have to agree. */
type Answer = readonly unknown[]

/**
 * How many tokens and tickets a call issues differs, so tokens are compared by their ms, and by their order. How a grant came
 * about differs, too: it depends on which call has ended a lapsed hold.
 */
const grantOf = ({ token, deadline, slots = [] }: Granted) => [msOf(token), whole(deadline), ...slots]
const whole = (ms: number) => Math.floor(ms + 5e-4)
const msOf = (token: number) => Math.floor(token / 1_000)

function refusal(error: unknown): Answer {
  return [(error as Error).constructor.name, (error as { waiters?: number }).waiters]
}

class Pair {
  readonly clock = new Clock()
  readonly sides: readonly Side[]
  readonly callers: Caller[]
  readonly #random: Random
  #ids = 0

  constructor(seed: number, definitions: readonly Definition[], wants: (random: Random) => string | undefined) {
    const random = new Random(seed)
    this.#random = random
    this.sides = [inMemory(definitions, this.clock), byScripts(definitions, this.clock)]
    this.callers = Array.from({ length: 9 }, (_, i) => {
      const id = this.#newId(clients[i % clients.length]!)
      const owner = definitions[0] === (semaphore as unknown) ? id : random.pick([id, id, 'x', 'y'])
      const lease = random.pick([50, 400, 2_000])
      const headStart = random.pick([0, 0, 0, 300])
      // Of a mutex, the two sides show the hold that is left under another id if its owner has re-entered.
      const kept = owner === id || definitions[0] !== (mutex as unknown)
      const minHold = kept ? random.pick([undefined, undefined, undefined, 100, 3_000]) : undefined
      const maxWaiters = random.pick([undefined, undefined, undefined, 0, 2])
      const claim = {
        key: KEY,
        id,
        owner,
        label: `label ${i}`,
        lease,
        headStart,
        minHold,
        maxWaiters,
        wants: wants(random),
      }
      return { claim, of: random.int(0, definitions.length - 1) }
    })
  }

  #newId(client: string): string {
    return client + String(++this.#ids).padStart(16, '_')
  }

  async step(): Promise<string> {
    const random = this.#random
    this.clock.now += random.chance(0.7) ? random.int(1, 30) : random.int(1, 2 * WAITER_TTL)
    this.clock.steps += 1
    const caller = random.pick(this.callers)
    await this.#renamed(caller)
    const { claim, of } = caller
    const { id } = claim
    switch (random.int(0, 9)) {
      case 0:
      case 1:
      case 2:
        return this.#both('try', side => asked(side, of, claim, 'try'))
      case 3:
      case 4:
      case 5:
        return this.#both('queue', side => asked(side, of, claim, 'queue'))
      case 6: {
        const { holders } = await this.sides[1]!.kinds[0]!.inspection.inspect(KEY)
        const [holder = id] = random.chance(0.8) ? random.shuffled(holders.map(({ id }) => id)) : [id]
        const caller = this.callers.find(({ claim }) => claim.id === holder)
        if (!caller) return 'nothing'
        const hold = holders.find(({ id }) => id === holder)
        const live = hold !== undefined
        const { of, claim } = caller
        // A hold that is released just when its `minHold` is over need not be kept.
        if (live && hold.heldFor === claim.minHold) return 'nothing'
        // An id belongs to one call.
        if (live) caller.claim = { ...claim, id: this.#newId(claim.id.slice(0, 12)) }
        return this.#both('release', side => released(side, of, claim, live))
      }
      case 7:
        return this.#both('leave', async ({ kinds, tickets }) => {
          tickets.delete(id)
          await kinds[of]!.leave(claim)
          return []
        })
      case 8: {
        const ms = random.pick([100, 3_000])
        return this.#both('renew', async ({ kinds, tokens }) => {
          const ends = await kinds[of]!.renew([{ hold: { key: KEY, id }, token: tokens.get(id) ?? 0, ms }])
          return ends.map(end => (typeof end === 'number' ? whole(end) : end))
        })
      }
      default: {
        const mates = this.callers.filter(other => other.of === of && other.claim.id.startsWith(id.slice(0, 12)))
        return this.#both('tend', async ({ kinds, tickets }) => {
          const entries = mates.flatMap(({ claim }) => {
            const ticket = tickets.get(claim.id)
            return ticket === undefined ? [] : [{ claim, ticket }]
          })
          if (entries.length === 0) return []
          const { waiters } = await kinds[of]!.tend(KEY, entries)
          return waiters.map(each => (typeof each === 'number' ? 'waits' : grantOf(each)))
        })
      }
    }
  }

  /** Makes a call of both sides, and compares what it changes. Returns what happened. */
  async #both(name: string, call: (side: Side) => Promise<Answer>): Promise<string> {
    const [expected, found] = await Promise.all(
      this.sides.map(async side => {
        const answer = await call(side).catch(refusal)
        await side.settle()
        const grants = side.told.splice(0).sort(([a, m], [b, n]) => m - n || (a < b ? -1 : 1))
        for (const [id, token] of grants) side.tokens.set(id, token)
        return { answer, granted: grants.map(([id]) => id), state: await stateOf(side.kinds[0]!) }
      }),
    )
    expect(found, `${name} at ${this.clock.now}`).toEqual(expected)
    return `${name} ${found!.answer[0] ?? ''}`
  }

  /** A waiter that has expired is removed sooner or later, so it may lose its place. Its caller begins anew. */
  async #renamed(caller: Caller): Promise<void> {
    const { id } = caller.claim
    if (!this.sides[0]!.tickets.has(id)) return
    const { holders, waiters } = await this.sides[0]!.kinds[0]!.inspection.inspect(KEY)
    if ([...holders, ...waiters].every(each => each.id !== id))
      caller.claim = { ...caller.claim, id: this.#newId(id.slice(0, 12)) }
  }
}

async function asked(
  { kinds, tokens, tickets }: Side,
  of: number,
  claim: Claim,
  mode: 'try' | 'queue',
): Promise<Answer> {
  const answer = await new Promise<Granted | Refused>((done, failed) =>
    kinds[of]!.attempt(claim, mode, 0, false, { done, failed }),
  )
  if (answer.granted) {
    tokens.set(claim.id, answer.token)
    return ['granted', ...grantOf(answer)]
  }
  if (mode === 'queue') tickets.set(claim.id, answer.ticket)
  return ['refused', whole(answer.ttl)]
}

/** `live`: of a hold that has lapsed, the scripts need not say so, because its client knows. */
async function released({ kinds, told }: Side, of: number, { id, minHold }: Claim, live: boolean): Promise<Answer> {
  const { ended, successors = [] } = await new Promise<Released>((done, failed) =>
    kinds[of]!.release({ key: KEY, id, minHold }, undefined, { done, failed }),
  )
  for (const { id, grant } of successors) told.push([id, grant.token])
  return live ? [ended] : []
}

/**
 * What `inspect` shows, except estimates, which are made of more or fewer holds, and the age of a re-entry, which the scripts
 * count from the grant to its owner.
 */
async function stateOf(kind: Kind<LockState>): Promise<unknown> {
  const { holders, waiters, fencingToken = 0, label: _, ...state } = await kind.inspection.inspect(KEY)
  const several = state.kind === 'mutex' && state.holds > 1
  return {
    ...state,
    fencingToken: msOf(fencingToken),
    holders: holders.map(({ heldFor: _, fencingToken, id, label, ...holder }) => ({
      ...holder,
      fencingToken: msOf(fencingToken),
      // Of several holds of a mutex, the two sides show another one once the first has ended.
      ...(!several && { id, label }),
    })),
    waiters: waiters.map(({ expected: _, ...waiter }) => waiter),
  }
}

const kinds: readonly {
  name: string
  definitions: readonly Definition[]
  wants: (random: Random) => string | undefined
}[] = [
  { name: 'a mutex', definitions: [mutex as Definition], wants: () => undefined },
  { name: 'a read-write lock', definitions: [reading as Definition, writing as Definition], wants: () => undefined },
  {
    name: 'a semaphore',
    definitions: [semaphore as Definition],
    wants: random => `${random.int(1, 3)}/${random.pick([3, 4])}${random.pick(['', 's'])}`,
  },
]

describe.each(kinds)('$name', ({ definitions, wants }) => {
  test('grants the same to the same calls, by the scripts and in memory', { timeout: 600_000 }, async () => {
    const happened = new Set<string>()
    for (let seed = 1; seed <= SEEDS; seed++) {
      const pair = new Pair(seed, definitions, wants)
      try {
        for (let step = 0; step < STEPS; step++) happened.add(await pair.step())
      } catch (error) {
        throw new Error(`seed ${seed}`, { cause: error })
      }
    }
    for (const what of ['try granted', 'try refused', 'queue refused', 'queue LockQueueFullError', 'release true'])
      expect([...happened]).toContain(what)
  })
})

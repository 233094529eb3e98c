/**
 * Tests that the scripts of lua/ do the same in memory as on a real server, with Lua 5.1 and with Lua 5.4. The same random calls at the same times
 * must lead to the same replies, messages and keys. On the real server, the scripts read the time from a key, not from
 * the server's clock. When the test advances the time in this key, it also removes the lock's keys that have expired at
 * the new time.
 */
import type { Redis } from 'ioredis'
import { afterEach, expect, test } from 'vitest'
import { camel } from '../../../scripts/lua/bundle.ts'
import { unitsOf } from '../../../scripts/lua/source.ts'
import type { Arguments, Names } from '../../../src/kind.ts'
import { encodeClaim } from '../../../src/kinds/claim.ts'
import { mutex } from '../../../src/kinds/mutex/mutex.ts'
import { writing } from '../../../src/kinds/permits/read-write.ts'
import { semaphore } from '../../../src/kinds/permits/semaphore.ts'
import { mutexScripts } from '../../../src/kinds/scripts.ts'
import { Keys, Namespace } from '../../../src/redis/keys.ts'
import { textOf } from '../../../src/redis/scripts.ts'
import { renewed } from '../../kit/names.ts'
import { Random } from '../../kit/random.ts'
import { freshKey, plainRedis } from '../../kit/redis.ts'
import type { ScriptName } from '../witness.ts'
import { FakeRedis } from './redis.ts'

const SEQUENCES = 30
const STEPS = 40
const TTL = 900
const MEMORY = 2_000

/** Returns the values and the expiry of KEYS. */
const DUMP = `
local all = {}
for i, key in ipairs(KEYS) do
  local hash, set = redis.pcall('HGETALL', key), redis.pcall('ZRANGE', key, 0, -1, 'WITHSCORES')
  all[i] = { hash.err and {} or hash, set.err and {} or set, redis.call('PEXPIRETIME', key) }
end
return all`

/** One lock, both in memory and on the real server. */
class Pair {
  readonly clock: { micros: number }
  readonly inbox: string
  readonly lock: string
  readonly heard: string[] = []
  /** The calls so far: the name of the script, and the first word of its reply. */
  readonly given: string[] = []
  readonly #names: Names
  readonly #time: string
  readonly #redis: Redis
  readonly #memory: FakeRedis

  constructor(redis: Redis, clients: readonly string[]) {
    const keys = new Keys(new Namespace(`${freshKey('simulated')}:`, false), mutex)
    this.#names = keys.of('k')
    this.lock = this.#names.lock
    this.inbox = keys.inboxPrefix(this.lock)
    this.#time = `${this.lock}:time`
    this.#redis = redis
    // This clock is one hour ahead of the real server's clock, so that the real server never expires a key on its own.
    this.clock = { micros: (Date.now() + 3_600_000) * 1_000 }
    const channels = this.channels(clients)
    this.#memory = new FakeRedis(this.clock, (channel, text) => {
      if (!channels.includes(channel)) return 0
      this.heard.push(`${channel} ${text}`)
      return 1
    })
  }

  channels(clients: readonly string[]): string[] {
    return [`${this.lock}:unlock`, ...clients.map(client => this.inbox + client)]
  }

  readonly pass = async (ms: number): Promise<void> => {
    this.clock.micros += Math.floor(ms * 1_000)
    const { micros } = this.clock
    const lives = await Promise.all(this.#names.all.map(name => this.#redis.call('PEXPIRETIME', name)))
    const expired = this.#names.all.filter(
      (_, i) => Number(lives[i]) > 0 && Number(lives[i]) < Math.floor(micros / 1_000),
    )
    if (expired.length > 0) await this.#redis.del(...expired)
    await this.#redis.hset(this.#time, { seconds: Math.floor(micros / 1e6), micros: micros % 1e6 })
  }

  /** Runs a script in memory and on the real server, compares replies and keys, and returns the reply. */
  readonly run = async (name: ScriptName, ...args: Arguments): Promise<unknown> => {
    const lua = textOf(mutexScripts[name], { cluster: false, inboxes: this.inbox, tokenMemory: MEMORY })
    const { all: names } = name === 'renew' ? renewed(this.lock) : this.#names
    const argv = argvOf(args)
    const time = `redis.call('HMGET', '${this.#time}', 'seconds', 'micros')`
    const call = `${name} ${argv.join(' ')}`
    const text = lua.replaceAll("redis.call('TIME')", time)
    const reply = await this.#redis.eval(text, names.length + 1, ...names, this.#time, ...argv)
    expect(this.#memory.evalTwice(lua, names, argv), call).toEqual(reply)
    const there = await this.#redis.eval(DUMP, this.#names.all.length, ...this.#names.all)
    expect(unordered(this.#memory.eval(DUMP, this.#names.all, [])), `after ${call}`).toEqual(unordered(there))
    this.given.push(`${name} ${typeof reply === 'string' ? reply.split(' ', 1) : (reply as string[])[0]}`)
    return reply
  }

  async clean(): Promise<void> {
    await this.#redis.del(...this.#names.all, this.#time)
  }
}

/** Returns the arguments as text, up to the first one that is undefined. */
function argvOf(values: Arguments): string[] {
  const end = values.indexOf(undefined)
  return values.slice(0, end < 0 ? values.length : end).map(String)
}

/** Removes the order of hash fields from a dump, because the order may differ. */
function unordered(dump: unknown): unknown {
  return (dump as [string[], string[], number][]).map(([hash, set, lives]) => {
    const fields = hash.flatMap((field, i) => (i % 2 ? [] : [`${field}: ${hash[i + 1]}`]))
    return { fields: fields.sort(), set, lives }
  })
}

interface Caller {
  readonly id: string
  readonly lease: number
  readonly claim: string
}

/** Random calls by a few callers of three clients. The inbox of the third client has no subscriber. */
class Sequence {
  readonly #random: Random
  readonly #pair: Pair
  readonly #callers: Caller[]
  readonly #tickets = new Map<string, string>()
  /** The id and the token of the latest grant in any reply. */
  #granted = { id: '', token: 0 }

  constructor(random: Random, pair: Pair, clients: readonly string[]) {
    this.#random = random
    this.#pair = pair
    this.#callers = Array.from({ length: 9 }, (_, i) => {
      const id = `${clients[i % clients.length]}${String(i).padStart(16, '_')}`
      const owner = random.pick(['', '', 'x', 'x', 'é', `${clients[0]}${'0'.padStart(16, '_')}`])
      const lease = random.pick([50, 400, 2_000])
      const headStart = random.chance(0.2) ? 300 : 0
      const minHold = random.pick([undefined, undefined, 100, 3_000])
      const asked = { id, owner: owner || id, label: 'a label', lease, headStart, minHold }
      return { id, lease, claim: encodeClaim(asked, TTL) }
    })
  }

  async step(): Promise<void> {
    const random = this.#random
    const pair = this.#pair
    await pair.pass(random.chance(0.6) ? random.between(0.01, 30) : random.between(0, 2 * TTL))
    const { id, lease, claim } = random.pick(this.#callers)
    const { token } = this.#granted
    switch (random.int(0, 11)) {
      case 0:
      case 1:
      case 2:
        return this.#acquire(claim, random.pick([undefined, undefined, undefined, 'queue', 'queue', '0', '2']))
      case 11: {
        const floor = (random.chance(0.5) ? token : pair.clock.micros) + random.int(-5_000, 5_000)
        return this.#acquire(
          claim,
          random.pick(['try', 'queue', 'raise', 'same', 'place']),
          Math.max(floor, pair.clock.micros - 60_000_000),
          random.pick([undefined, token]),
        )
      }
      case 3:
      case 4: {
        const used = random.chance(0.5) ? token + random.int(0, 1_000) : undefined
        const ours = random.chance(0.7) ? this.#granted.id || id : id
        const kept = random.chance(0.5)
        await pair.run('release', ours, kept ? (used ?? 0) : used, kept ? 1 : undefined)
        return
      }
      case 5:
        await pair.run('renew', id, token + random.int(-1, 1), random.pick([0, 100, 3_000]))
        return
      case 6:
        return this.#leave()
      case 7:
        await pair.run('forceRelease', random.int(1, 9), random.pick([undefined, this.#granted.id, id]))
        return
      case 8: {
        const text = this.#granted.id + claim.slice(28)
        await pair.run('pass', this.#granted.id, text, token + random.int(0, 1_000), lease)
        return
      }
      case 9:
        await pair.run('sweep')
        return
      default: {
        const mates = this.#callers.filter(other => other.id.startsWith(id.slice(0, 12)) && this.#tickets.has(other.id))
        const waiters = mates.flatMap(mate => [mate.claim, this.#tickets.get(mate.id)!])
        if (waiters.length > 0) await pair.run('tend', TTL, ...waiters)
        const most = random.pick([undefined, 3])
        await (random.chance(0.5) ? pair.run('inspect', most, token, claim) : pair.run('inspect', most))
      }
    }
  }

  async #leave(): Promise<void> {
    const random = this.#random
    const waiting = this.#callers.filter(({ id }) => this.#tickets.has(id))
    const { id, claim } = random.pick(waiting.length > 0 && random.chance(0.7) ? waiting : this.#callers)
    const entry = random.chance(0.8) ? claim : undefined
    await this.#pair.run('leave', id, entry)
  }

  async #acquire(claim: string, mode?: string, floor?: number, returned?: number): Promise<void> {
    const reply = (await this.#pair.run('acquire', claim, mode, floor, returned)) as string
    const id = claim.slice(0, 28)
    const [status, token, , third] = reply.split(' ')
    if (status !== 'refused' && status !== 'absent') this.#granted = { id, token: Number(token) }
    else if (mode === 'queue') this.#tickets.set(id, third!)
  }
}

let sequence = 0
afterEach(({ task }) => {
  if (task.result?.state === 'fail') console.log(`sequence ${sequence}`)
})

const clients = ['a', 'b', 'c'].map(name => name.padEnd(12, '_'))
const heardOf = clients.slice(0, 2)

test('random calls lead to the same replies, messages and keys as on a real server', { timeout: 300_000 }, async () => {
  const redis = plainRedis()
  const ear = plainRedis()
  const heard: string[] = []
  ear.on('message', (channel: string, text: string) => heard.push(`${channel} ${text}`))
  const given = new Set<string>()
  for (sequence = 1; sequence <= SEQUENCES; sequence++) {
    const pair = new Pair(redis, heardOf)
    heard.length = 0
    await ear.subscribe(...pair.channels(heardOf))
    const calls = new Sequence(new Random(sequence), pair, clients)
    for (let step = 0; step < STEPS; step++) await calls.step()
    // The reply to UNSUBSCRIBE arrives after all messages that were sent before it.
    await ear.unsubscribe()
    expect(pair.heard).toEqual(heard)
    await pair.clean()
    for (const reply of pair.given) given.add(reply)
  }
  // The next test covers the reply `unfinished`, which a script gives if one call cannot pass over all dead waiters.
  const { scripts } = unitsOf(new URL('../../../lua/', import.meta.url), ['mutex', 'permits'])
  const promised = scripts[0]!.flatMap(({ name, replies }) => replies.map(word => `${camel(name)} ${word}`))
  expect([...given].sort()).toEqual(promised.filter(reply => !reply.endsWith('unfinished')).sort())
})

test('replies agree even if one call cannot pass all dead waiters', async () => {
  const redis = plainRedis()
  const ear = plainRedis()
  const [holder, heir] = heardOf.map(client => `${client}${'1'.padStart(16, '_')}`) as [string, string]
  const claimOf = (id: string) => encodeClaim({ id, owner: id, label: 'a label', lease: 400, headStart: 0 }, TTL)
  const crowd = Array.from({ length: 500 }, (_, i) => clients[2]! + String(i).padStart(16, '_'))
  const finders: Record<string, (pair: Pair, ticket: string) => Promise<unknown>> = {
    release: ({ run }) => run('release', holder),
    leave: ({ run }) => run('leave', holder),
    forceRelease: ({ run }) => run('forceRelease', 'x'),
    async acquire({ run, pass }) {
      await pass(500)
      return run('acquire', claimOf(heir), 'queue')
    },
    async tend({ run, pass }, ticket) {
      await pass(500)
      return run('tend', TTL, claimOf(heir), ticket)
    },
  }
  for (const find of Object.values(finders)) {
    const pair = new Pair(redis, heardOf)
    const { clock, run, pass } = pair
    await ear.subscribe(...pair.channels(heardOf))
    await pass(1)
    await run('acquire', claimOf(holder))
    const waiters = crowd.flatMap((id, i) => [claimOf(id), clock.micros + i])
    await run('tend', TTL, ...waiters)
    const queued = await run('acquire', claimOf(heir), 'queue')
    expect([await find(pair, String(queued).split(' ')[3]!)].flat()).toEqual(['unfinished'])
    expect(await run('sweep')).toBe('unfinished')
    expect(await run('sweep')).toBe('swept')
    expect(await run('release', heir)).toMatch(/^released/)
    await pair.clean()
  }
})

test.each([
  { kind: semaphore, ended: ['unfinished', 'unfinished', 'swept'] },
  { kind: writing, ended: ['released', 'swept', 'swept'] },
])('Lua 5.4 also runs what the simulation does not call: long queues of a $kind.name', ({ kind, ended }) => {
  const memory = new FakeRedis({ micros: 1_750_000_000_123_456 }, () => 0)
  const space = new Namespace('lock:', false)
  const { all } = new Keys(space, kind).of('k')
  const run = (name: keyof typeof kind.scripts, ...args: Arguments) => {
    const lua = textOf(kind.scripts[name], { cluster: false, inboxes: 'lock:inbox:', tokenMemory: MEMORY })
    return [memory.evalTwice(lua, all, argvOf(args))].flat()
  }
  const claims = Array.from({ length: 501 }, (_, i) => {
    const id = `${clients[i % 3]}${String(i).padStart(16, '_')}`
    const wants = kind === semaphore ? '1/1' : '1000000000/1000000000'
    return encodeClaim({ id, owner: id, label: 'a label', lease: 400, headStart: 0, wants }, TTL)
  })
  expect(run('acquire', claims[0])[0]).toMatch(/^granted/)
  run('tend', TTL, ...claims.slice(1).flatMap((claim, i) => [claim, 1_750_000_000_000_000 + i]))
  const [live, , page] = run('inspect', 3, '').slice(3) as [string[], unknown, string[]]
  expect([live.length, page.length]).toEqual([2, 6])
  const [id, deadline] = live
  expect(run('inspect', 3, `${deadline} ${id}`, page[5], page[4])[5]).toHaveLength(6)
  expect([run('forceRelease', 'x'), run('sweep'), run('sweep')].flat()).toEqual(ended)
})

/**
 * The server in memory is what the scripts of lua/ are: the same calls at the same times bring the same replies, the same
 * messages and the same state, in random sequences. The scripts run in a real Redis, but for the time: they read it from
 * a key, and what would have expired by then is removed before each call.
 */
import type { Redis } from 'ioredis'
import { afterEach, expect, test } from 'vitest'
import { Keys, type Names } from '../../src/redis/keys.ts'
import { scripts } from '../../src/redis/scripts.generated.ts'
import type { ScriptName } from '../../src/redis/scripts.ts'
import { freshKey, plainRedis } from '../support/redis.ts'
import type { Watcher } from './lock-state.ts'
import { Random } from './random.ts'
import { Server } from './server.ts'
import { Timeline } from './timeline.ts'

const SEQUENCES = 150
const STEPS = 40
const TTL = 900
const MEMORY = 2_000

const unwatched: Watcher = {
  granted() {},
  reentered() {},
  dropped() {},
  passed() {},
  taken() {},
  joined() {},
  left() {},
}

interface Caller {
  readonly id: string
  readonly owner: string
  readonly lease: number
  readonly claim: string
}

/** A grant with reserved tokens, as its client remembers it. */
interface Run {
  readonly id: string
  readonly first: number
  readonly size: number
}

/** Both servers, for one lock. */
class Pair {
  readonly names: Names
  readonly inbox: string
  readonly #redis: Redis
  readonly #timeline = new Timeline()
  readonly #memory: Server
  readonly #time: string
  readonly #heard: string[] = []

  constructor(redis: Redis, clients: readonly string[]) {
    const keys = new Keys('', freshKey('simulated'), false)
    this.#redis = redis
    this.names = keys.of('k')
    this.inbox = keys.inboxPrefix(this.names.lock)
    this.#time = `${this.names.lock}:time`
    // In the future of the real server, so that it never expires a key by itself.
    this.#memory = new Server(this.#timeline, unwatched, Date.now() + 3_600_000)
    for (const channel of this.channels(clients)) {
      this.#memory.subscribe(channel, { receive: (to, text) => this.#heard.push(`${to} ${text}`) })
    }
  }

  channels(clients: readonly string[]): string[] {
    return [`${this.names.lock}:unlock`, ...clients.map(client => this.inbox + client)]
  }

  get heard(): readonly string[] {
    return this.#heard
  }

  async pass(ms: number): Promise<void> {
    this.#timeline.now += ms
    const keys = Object.values(this.names)
    const lives = await Promise.all(keys.map(key => this.#redis.call('PEXPIRETIME', key)))
    const expired = keys.filter((_, i) => Number(lives[i]) > 0 && Number(lives[i]) < this.#memory.now)
    if (expired.length > 0) await this.#redis.del(...expired)
    const { micros } = this.#memory
    await this.#redis.hset(this.#time, { seconds: Math.floor(micros / 1e6), micros: micros % 1e6 })
  }

  /** The reply of both; the texts of errors differ. */
  async run(name: ScriptName, argv: readonly (string | number)[]): Promise<{ redis: unknown; memory: unknown }> {
    const keys = name === 'renew' || name === 'pass' ? [this.names.lock] : Object.values(this.names)
    const time = `redis.call('HMGET', '${this.#time}', 'seconds', 'micros')`
    const lua = scripts[name].lua.replaceAll(`redis.call('TIME')`, time)
    const args = argv.map(String)
    const failed = () => 'error'
    const redis = await this.#redis.eval(lua, keys.length, ...keys, ...args).catch(failed)
    let memory: unknown
    try {
      memory = this.#memory.run(name, keys, args)
    } catch {
      memory = failed()
    }
    return { redis, memory: JSON.parse(JSON.stringify(memory, (_, value) => value ?? null)) }
  }

  /** What `inspect` does not tell. */
  async clocks(): Promise<{ redis: unknown; memory: unknown }> {
    const fields = ['clock', 'queued', 'keep'] as const
    const { hash } = this.#memory.keysOf(this.names.lock)
    const memory = fields.map(field => (hash?.[field] === undefined ? null : String(hash[field])))
    return { redis: await this.#redis.hmget(this.names.lock, ...fields), memory }
  }

  async clean(): Promise<void> {
    await this.#redis.del(...Object.values(this.names), this.#time)
  }
}

/** A sequence of calls by a few callers of three clients, one of which hears nothing. */
class Sequence {
  readonly #random: Random
  readonly #pair: Pair
  readonly #callers: Caller[]
  readonly #tickets = new Map<string, string>()
  readonly #runs: Run[] = []
  #token = '0'

  constructor(random: Random, pair: Pair, clients: readonly string[]) {
    this.#random = random
    this.#pair = pair
    this.#callers = Array.from({ length: 9 }, (_, i) => {
      const id = `${clients[i % clients.length]}${String(i).padStart(16, '_')}`
      // The name of one caller may be the id of another: of the same client, or not.
      const named = random.pick(['x', 'x', `${random.pick(clients)}${'0'.padStart(16, '_')}`])
      const owner = random.chance(0.3) ? named : id
      const lease = random.pick([50, 400, 2_000])
      const headStart = random.chance(0.2) ? 300_000 : 0
      return { id, owner, lease, claim: claimOf(id, owner, lease, headStart) }
    })
  }

  async step(): Promise<string> {
    const random = this.#random
    const { inbox } = this.#pair
    await this.#pair.pass(random.chance(0.6) ? random.between(0.01, 30) : random.between(0, 2 * TTL))
    const { id, lease, claim } = random.pick(this.#callers)
    switch (random.int(0, 10)) {
      case 0:
      case 1: {
        const block = random.pick([undefined, 1, 1_000])
        return this.#run('acquire', [claim, lease, MEMORY, inbox, ...(block ? [block] : [])])
      }
      case 2:
      case 3:
      case 4:
        return this.#run('acquire', [claim, lease, MEMORY, inbox, 'queue'])
      case 5: {
        const runs = this.#runs.filter(known => known.id === id)
        const run = random.chance(0.8) ? runs.at(-1) : runs[0]
        const block = run && random.chance(0.8) ? [run.first + random.int(0, run.size), run.first + run.size] : []
        return this.#run('release', [id, MEMORY, inbox, ...block])
      }
      case 6:
        return this.#run('renew', [MEMORY, id, this.#known(), random.pick([0, 100, 3_000])])
      case 7:
        return this.#run('leave', random.chance(0.8) ? [id, inbox, MEMORY, claim] : [id, inbox, MEMORY])
      case 8:
        return this.#run('forceRelease', [this.#token, inbox, MEMORY])
      case 9: {
        const run = this.#runs.at(random.chance(0.8) ? -1 : 0)
        if (!run) return 'nothing'
        const heir = random.pick(this.#callers)
        const issued = run.first + random.int(0, run.size)
        return this.#run('pass', [run.id, claimOf(run.id, heir.id, heir.lease, 0), issued, heir.lease, MEMORY])
      }
      default: {
        const mates = this.#callers.filter(other => other.id.startsWith(id.slice(0, 12)) && this.#tickets.has(other.id))
        if (mates.length === 0) return 'nothing'
        const waiters = mates.flatMap(mate => [mate.claim, this.#tickets.get(mate.id)!])
        return this.#run('tend', [inbox, MEMORY, TTL, ...waiters])
      }
    }
  }

  /** The latest token, or one before or after it. */
  #known(): string {
    return this.#token === '0' ? '1000000000000000' : String(Number(this.#token) + this.#random.int(-1, 1))
  }

  async #run(name: ScriptName, argv: (string | number)[]): Promise<string> {
    const { redis, memory } = await this.#pair.run(name, argv)
    const call = `${name} ${argv.join(' ')}`
    expect(memory, call).toEqual(redis)
    if (name === 'acquire' && redis !== 'error') this.#learn(argv, (redis as string).split(' '))
    if (name === 'pass' && redis !== 'gone') this.#token = String(Math.max(Number(this.#token), Number(argv[2])))
    const state = await this.#pair.run('inspect', [1])
    expect(stateOf(state.memory), `state after ${call}`).toEqual(stateOf(state.redis))
    const clocks = await this.#pair.clocks()
    expect(clocks.memory, `clocks after ${call}`).toEqual(clocks.redis)
    return redis === 'error' ? redis : call
  }

  #learn(argv: readonly (string | number)[], [status, token, , third]: string[]): void {
    const [id, mode] = [String(argv[0]).slice(0, 28), argv[4]]
    if (status === 'refused') {
      if (mode === 'queue') this.#tickets.set(id, third!)
      return
    }
    this.#token = token!
    if (third !== undefined) this.#runs.push({ id, first: Number(token), size: Number(third) })
  }
}

/** lua/include/claim.lua has its form. */
function claimOf(id: string, owner: string, lease: number, headStart: number): string {
  const name = owner === id ? '' : owner
  return `${id} ${name.length} ${lease} ${TTL} ${headStart} ${name}a label`
}

/** What `inspect` says, with the deadlines in no particular order. */
function stateOf(reply: unknown): unknown {
  const [word, micros, holder, holds, queue, expiry] = reply as [string, string, string, string, string[], string[]]
  const deadlines = Object.fromEntries(expiry.flatMap((id, i) => (i % 2 ? [] : [[id, Number(expiry[i + 1])]])))
  return { word, micros, holder, holds, queue, deadlines }
}

let sequence = 0
afterEach(({ task }) => {
  if (task.result?.state === 'fail') console.log(`sequence ${sequence}`)
})

test('the server in memory answers, tells and keeps what the scripts do', async () => {
  const redis = plainRedis()
  const ear = plainRedis()
  const heard: string[] = []
  ear.on('message', (channel: string, text: string) => heard.push(`${channel} ${text}`))
  for (sequence = 1; sequence <= SEQUENCES; sequence++) {
    const clients = ['a', 'b', 'c'].map(name => name.padEnd(12, '_'))
    const pair = new Pair(redis, clients.slice(0, 2))
    heard.length = 0
    await ear.subscribe(...pair.channels(clients.slice(0, 2)))
    const calls = new Sequence(new Random(sequence), pair, clients)
    for (let step = 0; step < STEPS; step++) if ((await calls.step()) === 'error') break
    // Subscribing again is answered behind every message so far.
    await ear.unsubscribe()
    expect(heard).toEqual(pair.heard)
    await pair.clean()
  }
}, 60_000)

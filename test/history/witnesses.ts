/**
 * Two witnesses that show whether holders exclude each other. They do not rely on the lock. A process consults them
 * only while its own lease says `held`.
 *
 * The first witness is a folder for each key. A process that gets the lock makes a file in the folder, and then reads
 * the other files there. When the process releases the lock, it removes its file. If two processes hold the lock at the
 * same time, the process that makes its file later sees the other file. The file names the holder, what the holder
 * asked for, and when its lease ends. After that time, the file does not count: its process was killed or stopped, or
 * was too slow to remove it. All other files belong to present holders. If these holders and the reading process
 * together exceed what the lock allows, the process records that they have met.
 *
 * The second witness is a register in a Redis that no fault ever reaches. Holders write their tokens to the register.
 * It refuses a token older than the last one that it has accepted. The holder of a read lock writes nothing: it only
 * asks whether the register would accept its token. The holders of a semaphore write in any order, so the register
 * records their tokens and refuses none.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import type { Lease } from '../../src/index.ts'
import { now, type Recorder } from './recorder.ts'
import { reenters, type Wants, weightOf } from './wants.ts'

const write = `
  local last = tonumber(redis.call('HGET', KEYS[1], 'token') or 0)
  if ARGV[3] ~= 'note' and tonumber(ARGV[1]) < last then return last end
  if ARGV[3] == 'ask' then return 0 end
  redis.call('HSET', KEYS[1], 'token', ARGV[1])
  redis.call('RPUSH', KEYS[2], ARGV[1] .. ' ' .. ARGV[2])
  return 0
`

interface Inside {
  readonly id: string
  readonly owner: string
  readonly wants?: Wants | undefined
  readonly until: number
}

export class Witnesses {
  readonly #worker: string
  readonly #folder: string
  readonly #redis: Redis
  readonly #recorder: Recorder

  constructor(worker: string, folder: string, redis: Redis, recorder: Recorder) {
    this.#worker = worker
    this.#folder = folder
    this.#redis = redis
    this.#recorder = recorder
  }

  /**
   * Writes a file for this holder, and looks for the files of other holders, all in one turn of the event loop. Returns
   * false if the holders together exceed what the lock allows, or if the lease has ended.
   */
  enter(lease: Lease, wants?: Wants): boolean {
    const { key, id, owner } = lease
    // Read the clock before `remaining`. If the process is stopped in between, the deadline is too early, never too
    // late.
    const at = now()
    const inside: Inside = { id, owner, wants, until: at + lease.remaining() }
    if (!lease.held) return false
    const folder = join(this.#folder, key)
    const file = join(folder, id)
    // If this hold is lost before its deadline, remove its file, so that the next holder does not find it.
    lease.signal.addEventListener('abort', () => rmSync(file, { force: true }), { once: true })
    mkdirSync(folder, { recursive: true })
    writeFileSync(file, JSON.stringify(inside))
    const others = othersIn(folder, inside)
    const weights = [inside, ...others].map(each => weightOf(each.wants))
    const taken = weights.reduce((sum, { permits }) => sum + permits, 0)
    const t = now()
    if (!lease.held) return false
    if (taken <= Math.max(...weights.map(({ of }) => of))) return true
    this.#recorder.record('met', { worker: this.#worker, key, id, others: others.map(other => other.id) }, t)
    return false
  }

  leave({ key, id }: Lease): void {
    rmSync(join(this.#folder, key, id), { force: true })
  }

  async write(lease: Lease, wants?: Wants): Promise<void> {
    const { key, id, fencingToken: token } = lease
    if (!lease.held) return
    const newer = await writeFenced(this.#redis, lease, wants)
    const fields = { worker: this.#worker, key, id, token }
    if (newer !== 0) {
      const t = now()
      if (lease.held) this.#recorder.record('fenced', { ...fields, newer }, t)
    } else if (wants !== 'read') this.#recorder.record('written', fields)
  }
}

/**
 * Writes to the register, even if the lease is no longer held. Returns 0 if the register accepted the write. Otherwise
 * returns the newer token that the register has seen.
 */
export async function writeFenced(redis: Redis, { key, id, fencingToken }: Lease, wants?: Wants): Promise<number> {
  const name = registerName(key)
  const how = wants === 'read' ? 'ask' : reenters(wants) ? 'write' : 'note'
  return (await redis.eval(write, 2, name, `${name}:log`, fencingToken, id, how)) as number
}

/** Returns the writes to a key that the register accepted, oldest first. */
export async function readRegister(redis: Redis, key: string): Promise<[token: number, id: string][]> {
  const lines = await redis.lrange(`${registerName(key)}:log`, 0, -1)
  return lines.map(line => {
    const [token, id] = line.split(' ') as [string, string]
    return [Number(token), id]
  })
}

function registerName(key: string): string {
  return `register:${key}`
}

/**
 * Returns the holders of all other files, except those whose lease has ended. If the lock can be re-entered, other
 * holds of the same owner are left out.
 */
function othersIn(folder: string, mine: Inside): Inside[] {
  return readdirSync(folder).flatMap(name => {
    const file = join(folder, name)
    const other = name === mine.id ? undefined : read(file)
    if (!other || (reenters(mine.wants) && other.owner === mine.owner)) return []
    if (other.until > now()) return [other]
    rmSync(file, { force: true })
    return []
  })
}

/** Returns the content of the file; undefined if it is gone, or is still being written. */
function read(file: string): Inside | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}

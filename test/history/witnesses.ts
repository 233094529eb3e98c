/**
 * Two witnesses of exclusion that know nothing of the lock, and count only while the lease of the witness says `held`.
 *
 * The file of a key is made with 'wx' by whoever enters and removed by whoever leaves. It says whose it is and until when
 * that one surely holds: a file whose time is over was left by a process that was killed, stopped or too slow, and is
 * taken over. So a meeting means: mine says held now, and the other's deadline is still to come.
 *
 * The register is in a Redis that no fault ever reaches. It refuses a token older than the last it has taken.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import type { Lease } from '../../src/index.ts'
import { now, type Recorder } from './recorder.ts'

const write = `
  local last = tonumber(redis.call('HGET', KEYS[1], 'token') or 0)
  if tonumber(ARGV[1]) < last then return last end
  redis.call('HSET', KEYS[1], 'token', ARGV[1])
  redis.call('RPUSH', KEYS[2], ARGV[1] .. ' ' .. ARGV[2])
  return 0
`

interface Inside {
  readonly id: string
  readonly owner: string
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

  /** Makes the file. Synchronous from the first look at the lease to the last. False: somebody is inside. */
  enter(lease: Lease): boolean {
    const file = this.#file(lease.key)
    // Read before `remaining`, so that a stop in between makes the deadline earlier, never later.
    const at = now()
    const inside: Inside = { id: lease.id, owner: lease.owner, until: at + lease.remaining() }
    if (!lease.held) return false
    // A hold that is lost before its deadline must not be met by the next.
    lease.signal.addEventListener('abort', () => remove(file, lease), { once: true })
    try {
      writeFileSync(file, JSON.stringify(inside), { flag: 'wx' })
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    const other = read(file)
    if (other && other.until > now() && other.owner !== lease.owner) {
      const t = now()
      if (lease.held) {
        this.#recorder.record('met', { worker: this.#worker, key: lease.key, id: lease.id, other: other.id }, t)
      }
      return false
    }
    if (!lease.held) return false
    const mine = join(this.#folder, `${lease.id}.new`)
    writeFileSync(mine, JSON.stringify(inside))
    renameSync(mine, file)
    return true
  }

  /** Removes the file, if it is surely still ours: one that is not is left to be taken over. */
  leave(lease: Lease): void {
    if (lease.held) remove(this.#file(lease.key), lease)
  }

  /** Writes to the register with the lease's token. */
  async write(lease: Lease): Promise<void> {
    const { key, id, fencingToken: token } = lease
    if (!lease.held) return
    const newer = await writeFenced(this.#redis, lease)
    const fields = { worker: this.#worker, key, id, token }
    if (newer === 0) this.#recorder.record('written', fields)
    else {
      const t = now()
      if (lease.held) this.#recorder.record('fenced', { ...fields, newer }, t)
    }
  }

  #file(key: string): string {
    return join(this.#folder, key)
  }
}

/** Writes to the register, whatever the lease says of itself. Not 0: refused, because of this newer token. */
export async function writeFenced(redis: Redis, { key, id, fencingToken }: Lease): Promise<number> {
  const name = registerName(key)
  return (await redis.eval(write, 2, name, `${name}:log`, fencingToken, id)) as number
}

/** What the register took of a key, oldest first. */
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

/** Removes the file, if it is this hold's. */
function remove(file: string, { id }: Lease): void {
  if (read(file)?.id === id) rmSync(file, { force: true })
}

/** Undefined: it is gone, or just being written. */
function read(file: string): Inside | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}

/**
 * Two witnesses of exclusion that know nothing of the lock.
 *
 * A marker file, made with 'wx' on entering a section and unlinked on leaving it: two sections at a time cannot both
 * make it. And a register in Redis that is written with a fencing token, refuses a token older than the last one it
 * has seen, and keeps a log of those it took.
 */
import { closeSync, openSync, rmSync } from 'node:fs'
import type { Redis } from 'ioredis'

const write = `
  if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'token') or 0) then return 0 end
  if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then redis.call('RPUSH', KEYS[2], ARGV[1]) end
  redis.call('HSET', KEYS[1], 'token', ARGV[1], 'value', ARGV[2])
  return 1
`

/** Makes the file; false if somebody else is inside. */
export function enter(file: string): boolean {
  try {
    closeSync(openSync(file, 'wx'))
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** Removes the file; a test does it for a process that died inside. */
export function leave(file: string): void {
  rmSync(file)
}

/** The register under this name. */
export class Register {
  readonly #redis: Redis
  readonly #name: string

  constructor(redis: Redis, name: string) {
    this.#redis = redis
    this.#name = `register:${name}`
  }

  async read(): Promise<string> {
    return (await this.#redis.hget(this.#name, 'value')) ?? ''
  }

  /** False: refused, because a newer token has been seen. */
  async write(token: number, value: string): Promise<boolean> {
    return (await this.#redis.eval(write, 2, this.#name, `${this.#name}:log`, token, value)) === 1
  }

  /** The different tokens taken, oldest first. */
  async log(): Promise<number[]> {
    return (await this.#redis.lrange(`${this.#name}:log`, 0, -1)).map(Number)
  }
}

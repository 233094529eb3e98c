/** What the commands that work on locks have in common: how Redis is named, reached, and complained about. */

import type { Command } from 'commander'
import { Redis } from 'ioredis'
import { LockClient, LockConnectionError } from '../index.ts'
import { exitCodes, Failure } from './failure.ts'

export interface ConnectionOptions {
  readonly url?: string
  readonly prefix: string
}

export interface Connected {
  readonly locks: LockClient
  /** The server's time of day, in ms. */
  serverTime(): Promise<number>
}

const local = 'redis://127.0.0.1:6379'
/** How long the first connection may take, in ms. Later ones are the lock client's business. */
const CONNECT_WITHIN = 5_000

export function withConnection(command: Command): Command {
  return command
    .option('--url <url>', `Redis to use (default: $REDIS_URL, else ${local})`)
    .option('--prefix <text>', 'first part of every key in Redis', 'lock')
}

/** Connects, works, and disconnects. A Redis that is not there is told at once, not after the patience of a lock client. */
export async function connected<T>(
  { url = process.env['REDIS_URL'] || local, prefix }: ConnectionOptions,
  label: string | undefined,
  work: (at: Connected) => Promise<T>,
): Promise<T> {
  const redis = await connect(url)
  try {
    await using locks = new LockClient(redis, { prefix, ...(label !== undefined && { label }) })
    // Its own errors are told by the calls that fail; what else it has to say, for instance of rights, is a warning.
    locks.on('error', ({ error }) => console.error(`baton: ${messageOf(error)}`))
    return await work({ locks, serverTime: () => timeOf(redis) })
  } catch (error) {
    if (error instanceof LockConnectionError) throw new Failure(error.message, exitCodes.unavailable)
    throw error
  } finally {
    redis.disconnect()
  }
}

async function connect(url: string): Promise<Redis> {
  // The address is not quoted anywhere: it may have a password.
  if (!/^rediss?:\/\//.test(url) || !URL.canParse(url)) {
    throw new Failure('the address of Redis is not of the form redis://host:port', exitCodes.unavailable)
  }
  let reason: Error | undefined
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null, connectTimeout: CONNECT_WITHIN })
  redis.on('error', error => {
    reason = error
  })
  try {
    await redis.connect()
    await redis.ping()
    return redis
  } catch (error) {
    if (redis.status !== 'end') redis.disconnect()
    const { hostname, port } = new URL(url)
    const where = `${hostname}:${port || 6379}`
    throw new Failure(`Redis at ${where} cannot be used: ${messageOf(reason ?? error)}`, exitCodes.unavailable)
  }
}

async function timeOf(redis: Redis): Promise<number> {
  const [seconds, micros] = await redis.time()
  return Number(seconds) * 1_000 + Number(micros) / 1_000
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

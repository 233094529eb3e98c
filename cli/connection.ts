/**
 * What the commands that work on locks have in common: how Redis is named, reached, and complained about.
 *
 * What is heavy is imported where it is needed, here as in the commands: `baton run` is started often, by scripts, and
 * `--help` and the completion of a shell need nothing of Redis.
 */
import type { Command } from 'commander'
import type { Redis } from 'ioredis'
import { messageOf } from '../local-redis/error-message.ts'
import { addressOf } from '../local-redis/redis-url.ts'
import type { LockClient } from '../src/index.ts'
import { exitCodes, Failure, warn } from './failure.ts'

export interface ConnectionOptions {
  readonly url?: string
  readonly prefix: string
}

export interface Connected {
  readonly locks: LockClient
  /** Host and port of the Redis that was reached. */
  readonly where: string
  /** The server's time of day, in ms. */
  serverTime(): Promise<number>
}

const local = 'redis://127.0.0.1:6379'
/** How long the first connection may take until Redis has answered, in ms. Later ones are the lock client's business. */
const CONNECT_WITHIN = 5_000
/** Between two attempts to have the connection for `serverTime` again, in ms. */
const AGAIN = 500
/** In ms. */
const A_MOMENT = 1_000

export function withConnection(command: Command): Command {
  return command
    .option('--url <url>', `Redis to use (default: $REDIS_URL, else ${local}); a password is safer in $REDIS_URL`)
    .option('--prefix <text>', 'first part of every key in Redis', 'lock')
}

/** Connects, works, and disconnects. A Redis that is not there is told at once, not after the patience of a lock client. */
export async function connected<T>(
  { url = process.env['REDIS_URL'] || local, prefix }: ConnectionOptions,
  label: string | undefined,
  work: (at: Connected) => Promise<T>,
): Promise<T> {
  const address = checkedAddress(url)
  hideFromOthers(url, address)
  const { LockClient, LockConnectionError } = await import('../src/index.ts')
  const redis = await connect(url)
  // The time of day may be asked again; and a half-open connection would leave every such question unanswered.
  const lasting = { retryStrategy: () => AGAIN, commandTimeout: CONNECT_WITHIN, socketTimeout: CONNECT_WITHIN }
  Object.assign(redis.options, lasting)
  const warnings = new Warnings()
  try {
    await using locks = new LockClient(redis, { prefix, ...(label !== undefined && { label }) })
    locks.on('error', ({ error }) => warnings.add(messageOf(error)))
    const result = await work({ locks, where: placeOf(address), serverTime: () => timeOf(redis) })
    warnings.tell()
    return result
  } catch (error) {
    if (error instanceof LockConnectionError) throw new Failure(oneLine(error.message), exitCodes.unavailable)
    throw error
  } finally {
    redis.disconnect()
  }
}

/** The address of Redis as it was given, if it is one. */
export function checkedAddress(url: string): URL {
  const address = addressOf(url)
  if (address) return address
  // It is not quoted: a mistyped address still has its password.
  const wanted = 'not of the form redis://host:port or rediss://user:password@host:port/database'
  throw new Failure(
    `the address of Redis is ${wanted}; a password that has / ? # @ or % in it is written with %2F and so on`,
    exitCodes.unavailable,
  )
}

/** Host and port: what may be shown of an address. */
function placeOf({ hostname, port }: URL): string {
  return `${hostname}:${port || 6379}`
}

/** The same error as Redis or the network has it, with what to do about it where that is known. */
function causeOf(error: unknown, { protocol }: URL): string {
  const message = oneLine(messageOf(error))
  if (protocol === 'rediss:') {
    if (/certificate|altname/i.test(message)) {
      return `${message}; NODE_EXTRA_CA_CERTS can name a file with the certificates to trust`
    }
    if (/SSL|EPROTO|ETIMEDOUT|no answer|closed|ECONNRESET/i.test(message)) {
      return `no TLS connection came about (${message}); without TLS its address begins with redis://`
    }
  } else if (/Connection is closed|ECONNRESET/.test(message)) {
    return `it closed the connection without an answer; if it expects TLS, its address begins with rediss://`
  }
  if (/^NOAUTH\b/.test(message)) return `${message}; the address with a password is redis://user:password@host:port`
  return message
}

/** A connection that has been made, and is not made again when it is lost. Rejects with Failure within some seconds. */
export async function connect(url: string): Promise<Redis> {
  const address = checkedAddress(url)
  const [{ Redis }, { heardOut }, { default: within }] = await Promise.all([
    import('ioredis'),
    import('../src/redis/clients.ts'),
    import('p-timeout'),
  ])
  let reason: Error | undefined
  const options = {
    lazyConnect: true,
    // What a user of few rights may not ask. A server that is loading its data is waited for by the lock client.
    enableReadyCheck: false,
    connectTimeout: CONNECT_WITHIN,
    // A server that hangs does not say goodbye, and one that has died cannot.
    disconnectTimeout: 200,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
  }
  const redis = heardOut(new Redis(url, options))
  redis.on('error', error => {
    reason = error
  })
  try {
    const milliseconds = CONNECT_WITHIN
    await within(greet(redis), { milliseconds, message: `no answer within ${milliseconds / 1_000} s` })
    // For instance that there is no such database: ioredis would go on with another one.
    if (reason) throw reason
    return redis
  } catch (error) {
    if (redis.status !== 'end') redis.disconnect()
    // That the connection was closed is only the consequence of what came before.
    const cause = reason && /closed/.test(messageOf(error)) ? reason : error
    throw new Failure(`Redis at ${placeOf(address)} cannot be used: ${causeOf(cause, address)}`, exitCodes.unavailable)
  }
}

/** Connects, and makes sure that it is what locks can be kept in. */
async function greet(redis: Redis): Promise<void> {
  await redis.connect()
  // Everybody may ask for this. It is the kind of server as the server calls it: standalone, sentinel or cluster.
  const traits = (await redis.call('HELLO').catch(() => [])) as unknown[]
  const mode = traits[traits.indexOf('mode') + 1]
  if (mode === 'cluster') throw new Error('it is a node of a cluster, which this program does not work with')
  if (mode === 'sentinel') throw new Error('it is a sentinel; name the server that it watches')
}

/** The arguments of a program are seen by everybody on the machine, for instance by ps. */
function hideFromOthers(url: string, address: URL): void {
  if (!address.password || !process.argv.some(word => word.includes(url))) return
  process.title = ['baton', ...process.argv.slice(2)].join(' ').replaceAll(url, `${address.protocol}//${address.host}`)
}

async function timeOf(redis: Redis): Promise<number> {
  try {
    const [seconds, micros] = await redis.time()
    return Number(seconds) * 1_000 + Number(micros) / 1_000
  } catch (error) {
    throw new Failure(`Redis does not say what time it is: ${oneLine(messageOf(error))}`, exitCodes.unavailable)
  }
}

function oneLine(text: string): string {
  return text.trim().replace(/\s*\n\s*/g, ' ')
}

/**
 * What the lock client says that no call has failed of, for instance that a right is missing. Where a call does fail of it,
 * that follows at once and is the better word for the same thing; so they are told a moment later, or behind the work.
 */
class Warnings {
  readonly #held: string[] = []

  add(text: string): void {
    this.#held.push(text)
    setTimeout(() => this.tell(), A_MOMENT).unref()
  }

  tell(): void {
    for (const text of this.#held.splice(0)) warn(text)
  }
}

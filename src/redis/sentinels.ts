/**
 * Listens to the sentinels, who say when another server has become the master.
 *
 * A connection cannot tell. A master that was stopped, or cut off from the rest for a while, is replaced behind its
 * clients' backs, and when it goes on it takes itself for a master for some seconds more, until the sentinels have told
 * it: whoever is still connected to it is granted locks there that others are granted on the new master (I1).
 *
 * ioredis has a listener of this kind. This one is apart from the connections that it is for: it goes on while they are
 * made anew, so there is no moment in which a switch is missed; it serves both of them; other masters of the same
 * sentinels do not concern it; and a sentinel that was out of reach is asked whether the master is still the same.
 */
import type { Cluster, Redis, RedisOptions } from 'ioredis'
import type { SentinelClients } from './clients.ts'
import { WrongServer } from './refusals.ts'

/** Between attempts to reach a sentinel again, in ms, growing to the longest. */
const RETRY = { first: 100, longest: 2_000 }
/** In the words of ioredis: the answer of a sentinel that does not watch the master. */
const unknown = /No such master|invalid reply: null/
/** How often a sentinel has to show that it is there, and in what time, in ms. */
const PROBE = 5_000

export class Sentinels {
  readonly #sentinels: readonly Redis[]
  readonly #name: string
  readonly #switched: () => void
  readonly #deaf: (error: Error) => void
  /** Why a sentinel could not be reached, the last time that one could not. */
  #trouble: Error | undefined
  #probe: NodeJS.Timeout | undefined

  /** `switched`: the master is another one, or may be. `deaf`: a sentinel refuses to tell. */
  constructor({ options, make }: SentinelClients, switched: () => void, deaf: (error: Error) => void) {
    this.#name = options.name ?? ''
    this.#switched = switched
    this.#deaf = deaf
    this.#sentinels = (options.sentinels ?? []).map(address => this.#listenTo(make(optionsFor(address, options))))
  }

  open(): void {
    // A failure is no news: it tries again by itself.
    for (const sentinel of this.#sentinels) sentinel.connect().catch(() => {})
    // Who only listens does not notice that nobody is there any more. `socketTimeout` does, once something is asked.
    this.#probe = setInterval(() => {
      for (const sentinel of this.#sentinels) {
        if (sentinel.status === 'ready') sentinel.subscribe('+switch-master').catch(() => {})
      }
    }, PROBE)
  }

  close(): void {
    clearInterval(this.#probe)
    for (const sentinel of this.#sentinels) sentinel.disconnect()
  }

  /**
   * Adds to what ioredis says of a connection, where it says only that no sentinel could be reached. It says so, too, where
   * they have answered, but know no master of that name.
   */
  explain(redis: Redis | Cluster): void {
    let strange = 0
    let failed = 0
    redis.on('sentinelError', ({ message }: Error) => {
      if (unknown.test(message)) strange += 1
      else failed += 1
    })
    redis.on('error', (error: Error) => {
      if (!/sentinels are unreachable and/.test(error.message)) return
      error.cause ??= this.#trouble
      const why = `no master named "${this.#name}"`
      if (strange > 0 && failed === 0) error.cause = new WrongServer(`the sentinels know ${why}`)
      else if (strange > 0) error.message += ` The other sentinels know ${why}.`
      strange = failed = 0
    })
  }

  #listenTo(sentinel: Redis): Redis {
    let master: string | undefined
    sentinel.on('error', error => {
      this.#trouble = error
    })
    sentinel.on('message', (_, text: string) => {
      const [name, , , host, port] = text.split(' ')
      if (name !== this.#name) return
      master = `${host} ${port}`
      this.#switched()
    })
    sentinel.on('ready', () => {
      // Sent in one go, so that no switch falls between the answer and the first message.
      const asked = sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.#name)
      sentinel.subscribe('+switch-master').catch((error: Error) => {
        if (/^NOPERM\b/.test(error.message)) this.#deaf(error)
      })
      asked.then(
        address => {
          const before = master
          master = (address as string[] | null)?.join(' ')
          if (before !== undefined && master !== before) this.#switched()
        },
        () => {},
      )
    })
    return sentinel
  }
}

function optionsFor(
  { host = '127.0.0.1', port = 26_379, family }: SentinelAddress,
  { sentinelUsername: username, sentinelPassword: password, sentinelTLS: tls }: RedisOptions,
): RedisOptions {
  return {
    host,
    port,
    family,
    username,
    password,
    tls,
    socketTimeout: PROBE,
    retryStrategy: times => Math.min(times * RETRY.first, RETRY.longest),
  }
}

type SentinelAddress = NonNullable<RedisOptions['sentinels']>[number]

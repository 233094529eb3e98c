/**
 * Listens to the sentinels, which announce when another server becomes the master.
 *
 * A connection to the old master cannot detect the switch. Suppose that a master is stopped, or cut off for a while.
 * The sentinels promote another server. When the old master continues, it still considers itself the master for some
 * seconds, until the sentinels inform it. A client that is still connected to the old master is granted locks there,
 * while other clients are granted the same locks on the new master (I1).
 *
 * ioredis has a listener of this kind as well, but only as a part of each connection to the master. `Sentinels` is
 * independent of the connections to the master and serves all of them. It listens even while those connections are
 * being made again, so it misses no switch. It ignores other masters of the same sentinels. When a sentinel can be
 * reached again, `Sentinels` asks that sentinel for the master.
 */
import type { Cluster, Redis, RedisOptions } from 'ioredis'
import type { SentinelClients } from './clients.ts'
import { WrongServer } from './refusals.ts'
import { withoutArguments } from './without-arguments.ts'

/** The pause between attempts to reach a sentinel, in ms. It grows from `first` to `longest`. */
const RETRY = { first: 100, longest: 2_000 }
/** ioredis's error messages when a sentinel does not know the master. */
const unknown = /No such master|invalid reply: null/
/** Each sentinel is probed at this interval, in ms. A probe must be answered within the same time. */
const PROBE = 5_000

export interface SentinelsListener {
  /** Another server has become the master, or may have become it. */
  onSwitched(): void
  /** A sentinel refuses the subscription. */
  onDeaf(error: Error): void
}

export class Sentinels {
  readonly #sentinels: readonly Redis[]
  readonly #name: string
  readonly #listener: SentinelsListener
  /** Why the latest attempt to reach a sentinel failed. */
  #trouble: Error | undefined
  #probe: NodeJS.Timeout | undefined

  constructor({ options, make }: SentinelClients, listener: SentinelsListener) {
    this.#name = options.name ?? ''
    this.#listener = listener
    this.#sentinels = (options.sentinels ?? []).map(address => this.#listenTo(make(optionsFor(address, options))))
  }

  open(): void {
    // A failure to connect is ignored, because ioredis tries again on its own.
    for (const sentinel of this.#sentinels) sentinel.connect().catch(() => {})
    // A connection that only listens does not notice that its sentinel is gone. So each sentinel gets a probe, which it
    // must answer. If no answer comes, `socketTimeout` ends the connection.
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
   * Adds the reason to ioredis's error that all sentinels are unreachable. ioredis also reports this error if sentinels
   * have answered, but know no master with the name that the caller gave.
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
      if (strange > 0 && failed === 0) error.cause = new WrongServer(`the sentinels know ${why}; check this name`)
      else if (strange > 0) error.message += ` The other sentinels know ${why}.`
      strange = failed = 0
    })
  }

  #listenTo(sentinel: Redis): Redis {
    let master: string | undefined
    sentinel.on('error', error => {
      this.#trouble = withoutArguments(error)
    })
    sentinel.on('message', (_, text: string) => {
      const [name, , , host, port] = text.split(' ')
      if (name !== this.#name) return
      master = `${host} ${port}`
      this.#listener.onSwitched()
    })
    sentinel.on('ready', () => {
      // The question and the subscription are sent together. So the client learns of every switch: an earlier one from
      // the answer, a later one from a message.
      const asked = sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.#name)
      sentinel.subscribe('+switch-master').catch((error: Error) => {
        if (/^NOPERM\b/.test(error.message)) this.#listener.onDeaf(withoutArguments(error))
      })
      asked.then(
        address => {
          const before = master
          master = (address as string[] | null)?.join(' ')
          if (before !== undefined && master !== before) this.#listener.onSwitched()
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

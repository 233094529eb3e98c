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
import type { Clock } from '../clock.ts'
import type { LockConnectionError } from '../errors.ts'
import type { SentinelClients } from './clients.ts'
import { Connection } from './connection.ts'
import { isReply, WrongServer } from './refusals.ts'

/** ioredis's error messages when a sentinel does not know the master. */
const unknown = /No such master|invalid reply: null/

export interface SentinelsListener {
  /** Another server has become the master, or may have become it. */
  onSwitched(): void
  /** A sentinel refuses the subscription. */
  onDeaf(error: Error): void
}

export class Sentinels {
  readonly #sentinels: readonly Connection[]
  readonly #name: string
  readonly #listener: SentinelsListener
  /** Why the latest attempt to reach a sentinel failed. */
  #trouble: Error | undefined

  constructor({ options, make }: SentinelClients, clock: Clock, outageTimeout: number, listener: SentinelsListener) {
    this.#name = options.name ?? ''
    this.#listener = listener
    this.#sentinels = (options.sentinels ?? []).map(address =>
      this.#listenTo(make(optionsFor(address, options)), clock, outageTimeout),
    )
  }

  open(): void {
    for (const { uplink } of this.#sentinels) uplink.open()
  }

  /**
   * A connection that only listens does not notice that its sentinel is gone. So each sentinel has to answer from time
   * to time.
   */
  probe(): void {
    for (const sentinel of this.#sentinels) if (sentinel.up) this.#subscribe(sentinel)
  }

  close(): void {
    for (const sentinel of this.#sentinels) sentinel.close()
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

  #listenTo(redis: Redis, clock: Clock, outageTimeout: number): Connection {
    let master: string | undefined
    redis.on('message', (_, text: string) => {
      const [name, , , host, port] = text.split(' ')
      if (name !== this.#name) return
      master = `${host} ${port}`
      this.#listener.onSwitched()
    })
    const sentinel = new Connection(redis, clock, outageTimeout, {
      onUp: () => {
        // The question and the subscription are sent together. So the client learns of every switch: an earlier one
        // from the answer, a later one from a message.
        const asked = sentinel.run(() => redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.#name))
        this.#subscribe(sentinel)
        asked.then(
          address => {
            const before = master
            master = (address as string[] | null)?.join(' ')
            if (before !== undefined && master !== before) this.#listener.onSwitched()
          },
          () => {},
        )
      },
      onDown: error => {
        this.#trouble = error
      },
    })
    return sentinel
  }

  #subscribe(sentinel: Connection): void {
    const subscribe = (redis: Redis | Cluster) => redis.subscribe('+switch-master')
    sentinel.run(subscribe).catch(({ cause }: LockConnectionError) => {
      if (isReply(cause) && /^NOPERM\b/.test(cause.message)) this.#listener.onDeaf(cause)
    })
  }
}

function optionsFor(
  { host = '127.0.0.1', port = 26_379, family }: SentinelAddress,
  { sentinelUsername: username, sentinelPassword: password, sentinelTLS: tls }: RedisOptions,
): RedisOptions {
  return { host, port, family, username, password, tls }
}

type SentinelAddress = NonNullable<RedisOptions['sentinels']>[number]

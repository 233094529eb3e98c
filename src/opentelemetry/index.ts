/**
 * redis-baton/opentelemetry: spans and metrics of a lock client. This module needs `@opentelemetry/api`; the other
 * modules do not. Only an import of `redis-baton/opentelemetry` loads this module.
 *
 * docs/observability.md lists the spans and metrics.
 * @module redis-baton/opentelemetry
 * @packageDocumentation
 */
import { type Attributes, diag, type MeterProvider, metrics, type TracerProvider, trace } from '@opentelemetry/api'
import type { Cluster, Redis } from 'ioredis'
import type { LockClient } from '../client.ts'
import { LockArgumentError } from '../errors.ts'
import type { ClientEvents } from '../events.ts'
import type { KeyedLock } from '../lock.ts'
import type { IoredisInstance } from '../redis/clients.ts'
import { Meters, type Tally } from './meters.ts'
import { names, SCHEMA_URL, SCOPE } from './names.ts'
import { Recorder } from './recorder.ts'
import { Trail } from './trail.ts'

/**
 * Options of `instrument`.
 * @since 0.1.0
 */
export interface InstrumentOptions {
  /**
   * Attributes that are added to every span and metric of this client. An example is `server.address`, which the lock
   * client itself does not add.
   * @defaultValue none
   * @since 0.1.0
   */
  attributes?: Attributes | undefined
  /**
   * Maps a key to its group. Metrics have the group as the attribute `redis_baton.key_group`. The function should
   * return few different groups, because each group adds a time series to each metric.
   * @defaultValue none: metrics do not distinguish keys
   * @since 0.1.0
   */
  keyGroup?: ((key: string) => string) | undefined
  /**
   * Where the ids of spans are stored, so that the span of each holder has a link to the span of the previous holder,
   * even of another process. This costs one more Redis command for each grant. No call waits for that command.
   * @defaultValue none: spans are linked only if both holders are in the same client
   * @since 0.1.0
   */
  links?: Links | undefined
  /**
   * The provider that receives spans.
   * @defaultValue the provider that is registered with `@opentelemetry/api`
   * @since 0.1.0
   */
  tracerProvider?: TracerProvider | undefined
  /**
   * The provider that receives metrics.
   * @defaultValue the provider that is registered with `@opentelemetry/api` when `instrument` is called
   * @since 0.1.0
   */
  meterProvider?: MeterProvider | undefined
}

/**
 * Where the holders, in whichever process, store the ids of their spans.
 * @since 0.1.0
 */
export interface Links {
  /**
   * The ioredis connection over which the ids of spans are stored. The caller closes it. The connection's Redis user
   * needs `+set` on the keys `<prefix>-trace:*`, and for servers before 6.2 also `+multi +exec +getset +pexpire`.
   * @since 0.1.0
   */
  redis: IoredisInstance
  /**
   * The prefix of the keys. It must be the same for all clients that lock the same keys.
   * @defaultValue `'lock'`
   * @since 0.1.0
   */
  prefix?: string | undefined
}

/**
 * The result of `instrument`. `disable` ends the instrumentation. With a `using` declaration, the end of the block
 * calls `disable`.
 * @since 0.1.0
 */
export interface Instrumentation extends Disposable {
  /**
   * Ends the instrumentation and all open spans. `disable` may be called again; it then has no effect.
   * @since 0.1.0
   */
  disable(): void
}

const known: readonly string[] = [
  'attributes',
  'keyGroup',
  'links',
  'tracerProvider',
  'meterProvider',
] satisfies (keyof InstrumentOptions)[]

/**
 * The tallies of at most this many groups are kept. The number is the SDK's default limit for the time series of one
 * metric. The SDK merges all further time series into one.
 */
const MOST_GROUPS = 2_000

const key = Symbol.for('redis-baton.instrumented')
const shared = globalThis as typeof globalThis & { [key]?: WeakMap<LockClient, Instrumentation> }
shared[key] ??= new WeakMap()
/**
 * The instrumented clients. All copies of this package in a process share this map. Otherwise, a client that two copies
 * instrument would be counted twice.
 */
const instrumented = shared[key]

/**
 * Instruments a client. From now on, each of its calls has a span for the wait and one for the hold, and metrics count
 * the call. If `instrument` is called again for the same client, the new instrumentation replaces the old one.
 * @throws LockArgumentError for an unknown option
 * @since 0.1.0
 */
export function instrument(locks: LockClient, options: InstrumentOptions = {}): Instrumentation {
  for (const [name, value] of Object.entries(options)) {
    if (!known.includes(name)) {
      throw new LockArgumentError(name, value, `only these options: ${known.join(', ')}`)
    }
  }
  instrumented.get(locks)?.disable()
  const recorder = recorderOf(options)
  // All locks of a client share one `context` object, even if the client comes from another copy of this package.
  const { context } = (locks.mutex('any') as KeyedLock).client
  const deafen = listen(locks, recorder)
  context.spectator = recorder
  const disable = () => {
    if (context.spectator === recorder) context.spectator = undefined
    deafen()
    recorder.close()
  }
  const instrumentation = { disable, [Symbol.dispose]: disable }
  instrumented.set(locks, instrumentation)
  return instrumentation
}

function recorderOf(options: InstrumentOptions): Recorder {
  const { attributes = {}, keyGroup, links, tracerProvider = trace, meterProvider = metrics } = options
  const meters = new Meters(meterProvider.getMeter(SCOPE, undefined, { schemaUrl: SCHEMA_URL }), attributes)
  return new Recorder({
    tracer: tracerProvider.getTracer(SCOPE, undefined, { schemaUrl: SCHEMA_URL }),
    meters,
    trail: links && new Trail(links.redis as Redis | Cluster, links.prefix ?? 'lock'),
    common: { [names.system]: 'redis', ...attributes },
    tally: tallies(meters, keyGroup),
  })
}

/**
 * Returns a function that finds the `Tally` in which the calls on a key are counted. Each group of keys has one;
 * without `keyGroup`, all keys share one.
 */
function tallies(meters: Meters, keyGroup: InstrumentOptions['keyGroup']): (key: string) => Tally {
  const common = meters.tally({})
  if (!keyGroup) {
    common.beginAtZero()
    return () => common
  }
  const groups = new Map<string, Tally>()
  return key => {
    try {
      const group = keyGroup(key)
      let tally = groups.get(group)
      if (!tally) {
        tally = meters.tally({ [names.keyGroup]: group })
        if (groups.size < MOST_GROUPS) {
          groups.set(group, tally)
          tally.beginAtZero()
        }
      }
      return tally
    } catch (error) {
      // If the user's function throws, the lock must continue to work.
      diag.error('redis-baton: the option keyGroup threw an error, so the measurement has no group', error)
      return common
    }
  }
}

function listen(locks: LockClient, recorder: Recorder): () => void {
  const listeners: { [E in keyof ClientEvents]?: (event: ClientEvents[E]) => void } = {
    waiting: event => recorder.waiting(event),
    renewed: event => recorder.renewed(event),
    lost: event => recorder.lost(event),
    disconnected: () => recorder.disconnected(),
  }
  const each = Object.entries(listeners) as [keyof ClientEvents, () => void][]
  for (const [name, listener] of each) locks.on(name, listener)
  return () => {
    for (const [name, listener] of each) locks.off(name, listener)
  }
}

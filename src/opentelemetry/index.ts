/**
 * redis-baton/opentelemetry: spans and metrics of a lock client. Needs `@opentelemetry/api`, which the lock itself does
 * without; nothing of this is loaded, and nothing is slower, unless somebody imports it.
 *
 * docs/observability.md has tables of what is told.
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
   * Attributes of every span and every metric of this client, such as `server.address`, which the lock client does not
   * tell.
   * @defaultValue none
   * @since 0.1.0
   */
  attributes?: Attributes | undefined
  /**
   * What stands for a key in metrics, as the attribute `redis_baton.key_group`. Give it few different results: each is a
   * time series.
   * @defaultValue none: metrics do not tell keys apart
   * @since 0.1.0
   */
  keyGroup?: ((key: string) => string) | undefined
  /**
   * Links the span of each holder to that of its predecessor, also one of another process. It costs a command of its own
   * for every grant, which nobody waits for.
   * @defaultValue none: only predecessors of the same client are known
   * @since 0.1.0
   */
  links?: Links | undefined
  /**
   * Where spans go.
   * @defaultValue the one that is registered with `@opentelemetry/api`
   * @since 0.1.0
   */
  tracerProvider?: TracerProvider | undefined
  /**
   * Where metrics go.
   * @defaultValue the one that is registered with `@opentelemetry/api` when `instrument` is called
   * @since 0.1.0
   */
  meterProvider?: MeterProvider | undefined
}

/**
 * Where holders of all processes leave the names of their spans.
 * @since 0.1.0
 */
export interface Links {
  /**
   * A connection of ioredis to use for that, which stays the caller's. Its user needs `+set` on the keys `<prefix>-trace:*`; for
   * servers before 6.2 `+multi +exec +getset +pexpire` too.
   * @since 0.1.0
   */
  redis: IoredisInstance
  /**
   * The same for all who lock the same keys.
   * @defaultValue `'lock'`
   * @since 0.1.0
   */
  prefix?: string | undefined
}

/**
 * What `instrument` did, to be undone; `using` does so at the end of its block.
 * @since 0.1.0
 */
export interface Instrumentation extends Disposable {
  /**
   * The client is as it was before. Open spans end. May be called again.
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

/** So many time series the SDK keeps of a metric, by its default; beyond that it does not tell them apart. */
const MOST_GROUPS = 2_000

const key = Symbol.for('redis-baton.instrumented')
const shared = globalThis as typeof globalThis & { [key]?: WeakMap<LockClient, Instrumentation> }
shared[key] ??= new WeakMap()
/** Shared by all copies of this package in a process: a client that two of them instrument would count twice. */
const instrumented = shared[key]

/**
 * From now on, every call of this client has a span for its wait and one for its hold, and counts in metrics. A client
 * is instrumented once: a second call takes the place of the first.
 * @throws LockArgumentError for an option that there is not
 * @since 0.1.0
 */
export function instrument(locks: LockClient, options: InstrumentOptions = {}): Instrumentation {
  for (const [name, value] of Object.entries(options)) {
    if (!known.includes(name)) {
      throw new LockArgumentError(name, value, `one of the options ${known.join(', ')}`)
    }
  }
  instrumented.get(locks)?.disable()
  const recorder = recorderOf(options)
  // All locks of a client have one caller, whichever copy of this package it is of.
  const { caller } = (locks.mutex('any') as KeyedLock).calls
  const deafen = listen(locks, recorder)
  caller.spectator = recorder
  const disable = () => {
    if (caller.spectator === recorder) caller.spectator = undefined
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

/** The tally of a key: one for each group, or one for all. */
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
      // The caller's function must not break the lock.
      diag.error('redis-baton: keyGroup threw an error', error)
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

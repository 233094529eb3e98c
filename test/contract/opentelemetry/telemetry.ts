/** The real telemetry SDK, with exporters that keep everything they receive. It is shut down after the test. */
import { type Attributes, context, type HrTime, type Span, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  type DataPoint,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { onTestFinished } from 'vitest'
import type { ClientOptions, LockClient } from '../../../src/index.ts'
import { type Instrumentation, type InstrumentOptions, instrument } from '../../../src/opentelemetry/index.ts'
import { park } from '../../kit/parking.ts'
import { test as base, client } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'

export class Telemetry {
  readonly tracerProvider: BasicTracerProvider
  readonly meterProvider: MeterProvider
  readonly #spans = new InMemorySpanExporter()
  readonly #metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)

  constructor() {
    this.tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(this.#spans)] })
    // The interval is so long that only the test itself reads the metrics.
    const reader = new PeriodicExportingMetricReader({ exporter: this.#metrics, exportIntervalMillis: 3_600_000 })
    this.meterProvider = new MeterProvider({ readers: [reader] })
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
    onTestFinished(async () => {
      context.disable()
      await this.tracerProvider.shutdown()
      await this.meterProvider.shutdown()
    })
  }

  client(
    options: InstrumentOptions = {},
    clientOptions: ClientOptions = {},
    redis?: ConstructorParameters<typeof LockClient>[0],
  ): { locks: LockClient; instrumentation: Instrumentation } {
    const locks = client(clientOptions, redis)
    return { locks, instrumentation: this.instrument(locks, options) }
  }

  instrument(locks: LockClient, options: InstrumentOptions = {}): Instrumentation {
    const { tracerProvider, meterProvider } = this
    return instrument(locks, { tracerProvider, meterProvider, ...options })
  }

  async within<T>(name: string, fn: (span: Span) => Promise<T>): Promise<T> {
    return this.tracerProvider.getTracer('test').startActiveSpan(name, async span => {
      try {
        return await fn(span)
      } finally {
        span.end()
      }
    })
  }

  /** Returns the spans with this name that have ended, in the order of their ends. */
  spans(name: string): ReadableSpan[] {
    return this.#spans.getFinishedSpans().filter(span => span.name === name)
  }

  /** Waits until at least `count` spans with this name have ended, and returns them in the order of their ends. */
  async ended(name: string, count: number): Promise<ReadableSpan[]> {
    await eventually(() => this.spans(name).length >= count)
    return this.spans(name)
  }

  async metric<T = number>(name: string): Promise<{ unit: string; points: DataPoint<T>[] }> {
    await this.meterProvider.forceFlush()
    const [last] = this.#metrics.getMetrics().slice(-1)
    const all = last?.scopeMetrics.flatMap(({ metrics }) => metrics) ?? []
    const found = all.find(({ descriptor }) => descriptor.name === name)
    if (!found) throw new Error(`no metric ${name} among ${all.map(({ descriptor }) => descriptor.name).join(', ')}`)
    return { unit: found.descriptor.unit, points: found.dataPoints as DataPoint<T>[] }
  }

  async sum(name: string, where: Attributes = {}): Promise<number> {
    const { points } = await this.metric(name)
    return points.filter(({ attributes }) => includes(attributes, where)).reduce((sum, { value }) => sum + value, 0)
  }

  /** Returns the number and the sum (in s) of the values in a histogram that have the attributes `where`. */
  async times(name: string, where: Attributes = {}): Promise<{ count: number; sum: number }> {
    const { points } = await this.metric<Histogram>(name)
    const values = points.filter(({ attributes }) => includes(attributes, where)).map(({ value }) => value)
    return {
      count: values.reduce((all, { count }) => all + count, 0),
      sum: values.reduce((all, { sum = 0 }) => all + sum, 0),
    }
  }
}

export function milliseconds([seconds, nanoseconds]: HrTime): number {
  return seconds * 1e3 + nanoseconds / 1e6
}

export function activeSpan(): string | undefined {
  return trace.getActiveSpan()?.spanContext().spanId
}

function includes(attributes: Attributes, where: Attributes): boolean {
  return Object.entries(where).every(([name, value]) => attributes[name] === value)
}

/**
 * Takes a key's lock three times: first by the client `one`, then by the client `two`, then by `one` again. The second
 * and the third call have to wait.
 */
export async function passOn(one: LockClient, two: LockClient, key: string): Promise<void> {
  const first = await one.lock(key)
  const second = await park(two, key, { fair: true })
  await first.release()
  const third = await park(one, key, { fair: true })
  await (await second.lease).release()
  await (await third.lease).release()
}

/** Declares a test, which receives a telemetry SDK of its own, and a client that is instrumented with it. */
export const test = base
  .extend('telemetry', () => new Telemetry())
  .extend('traced', ({ telemetry }) => telemetry.client().locks)

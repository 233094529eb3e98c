/**
 * Measures what instrumentation costs. One process locks and releases without contention, again and again, on one
 * server. There are four variants:
 *
 *  nobody     no listener
 *  api        instrumented, with no SDK registered: the calls of @opentelemetry/api do nothing
 *  sdk        instrumented, with an SDK that makes every span and counts every metric, and exports nothing
 *  links      as sdk, with the option `links`: the client sends one more command for each grant, without waiting for it
 *
 * The variants take turns in short rounds, in another order each time, so that other load on the machine affects all
 * variants alike. In each round, the cost of each variant is divided by the cost of `nobody`. The result is the median
 * of these ratios. It is computed for the elapsed time, and for the processor time of this process, because other
 * programs disturb the processor time less.
 *
 * The script measures the built package:
 *
 *   npm run build
 *   tsx scripts/measure-opentelemetry.ts [rounds] [locks in each] > benchmarks/results/opentelemetry.json
 */
import { context } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base'
import { Redis } from 'ioredis'
import { LockClient } from 'redis-baton'
import { type InstrumentOptions, instrument } from 'redis-baton/opentelemetry'
import { machine, usage, usedByOthers } from '../benchmarks/harness/machine.ts'
import { obtainRedis } from '../local-redis/index.ts'

const [rounds, locksEach] = [Number(process.argv[2] ?? 60), Number(process.argv[3] ?? 500)]

const server = await obtainRedis({ announce: line => console.error(line) })
const redis = new Redis(server.url)
const contextManager = new AsyncLocalStorageContextManager()
const tracerProvider = new BasicTracerProvider()
const reader = new PeriodicExportingMetricReader({
  exporter: new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE),
  exportIntervalMillis: 3_600_000,
})
const meterProvider = new MeterProvider({ readers: [reader] })

const ways: Record<string, InstrumentOptions | undefined> = {
  nobody: undefined,
  api: {},
  sdk: { tracerProvider, meterProvider },
  links: { tracerProvider, meterProvider, links: { redis } },
}

/** The cost of a lock and its release, in µs. */
interface Cost {
  readonly passed: number
  readonly processor: number
}

async function measure(locks: LockClient, count: number): Promise<Cost> {
  const [begin, used] = [performance.now(), process.cpuUsage()]
  for (let i = 0; i < count; i++) await (await locks.lock('measured')).release()
  const { user, system } = process.cpuUsage(used)
  return { passed: ((performance.now() - begin) * 1000) / count, processor: (user + system) / count }
}

async function round(order: readonly string[], count: number): Promise<Record<string, Cost>> {
  const costs: Record<string, Cost> = {}
  for (const way of order) {
    const options = ways[way]
    const locks = clients.get(way) as LockClient
    if (options?.tracerProvider) context.setGlobalContextManager(contextManager.enable())
    costs[way] = await measure(locks, count)
    context.disable()
  }
  return costs
}

const names = Object.keys(ways)
const clients = new Map(names.map(name => [name, new LockClient(server.url)]))
for (const name of names) {
  const options = ways[name]
  if (options) instrument(clients.get(name) as LockClient, options)
}
const version = /redis_version:(\S+)/.exec(await redis.info('server'))?.[1]
for (let i = 0; i < 5; i++) await round(names, locksEach)

const before = usage()
const measured: Record<string, Cost>[] = []
for (let i = 0; i < rounds; i++) {
  const first = i % names.length
  measured.push(await round([...names.slice(first), ...names.slice(0, first)], locksEach))
}
const others = usedByOthers(before, usage())

const median = (values: number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] as number
const summary = names.map(name => {
  const of = (what: keyof Cost) => ({
    micros: median(measured.map(costs => costs[name]![what])),
    ratio: median(measured.map(costs => costs[name]![what] / costs['nobody']![what])),
  })
  return [name, { passed: of('passed'), processor: of('processor') }]
})
const result = {
  date: new Date().toISOString(),
  machine: { ...machine(), redis: version, usedByOthers: others },
  options: { rounds, locksEach },
  summary: Object.fromEntries(summary),
  rounds: measured,
}
console.log(JSON.stringify(result, undefined, 2))

await Promise.all([...clients.values()].map(locks => locks.close()))
redis.disconnect()
await meterProvider.shutdown()
await server.stop()

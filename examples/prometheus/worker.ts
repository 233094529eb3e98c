/**
 * A worker whose locks can be monitored. It serves its metrics for Prometheus, with a scrape configuration, alerts and
 * a dashboard in the same folder.
 */
import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { LockClient, LockTimeoutError } from 'redis-baton'
import { instrument } from 'redis-baton/opentelemetry'

const { REDIS_URL = 'redis://127.0.0.1:6379', METRICS_PORT = '9464' } = process.env

const exporter = new PrometheusExporter({ host: '127.0.0.1', port: Number(METRICS_PORT), preventServerStart: true })
const meterProvider = new MeterProvider({ readers: [exporter] })
await exporter.startServer()

const locks = new LockClient(REDIS_URL)
instrument(locks, { meterProvider })

const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())

/** Takes one order after the other. The orders of a customer must not be worked on at the same time. */
async function work(fair: boolean): Promise<void> {
  while (!stop.signal.aborted) {
    const customer = randomInt(3)
    try {
      const options = { fair, timeout: 5_000, signal: stop.signal }
      await locks.using(`example:customer:${customer}`, options, () => sleep(randomInt(2, 20)))
    } catch (error) {
      // An order that was not granted in time is counted, and left for later.
      if (!stop.signal.aborted && !(error instanceof LockTimeoutError)) throw error
    }
  }
}

console.log(`metrics on http://127.0.0.1:${METRICS_PORT}/metrics`)
await Promise.all([work(true), work(true), work(false), work(false)])
await locks.close()
await meterProvider.shutdown()
console.log('stopped')

/**
 * A worker with metrics for Prometheus. The scrape configuration, the alerts and the dashboard in this folder are made
 * for these metrics.
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
// Each group adds a time series to each metric, so the key itself is no group.
instrument(locks, { meterProvider, keyGroup: key => key.split(':')[1]! })

const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())

/** Processes one order after another. Orders of the same customer must not be processed at the same time. */
async function work(fair: boolean): Promise<void> {
  while (!stop.signal.aborted) {
    const customer = randomInt(3)
    try {
      const options = { fair, timeout: 5_000, signal: stop.signal }
      await locks.using(`example:customer:${customer}`, options, () => sleep(randomInt(2, 20)))
    } catch (error) {
      // If an order does not get the lock in time, it is counted as a timeout and left for later.
      if (!stop.signal.aborted && !(error instanceof LockTimeoutError)) throw error
    }
  }
}

console.log(`metrics on http://127.0.0.1:${METRICS_PORT}/metrics`)
await Promise.all([work(true), work(true), work(false), work(false)])
await locks.close()
await meterProvider.shutdown()
console.log('stopped')

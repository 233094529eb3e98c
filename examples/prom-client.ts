/**
 * Metrics of a worker's locks with prom-client, without OpenTelemetry.
 *
 * Counters and gauges are read from `stats()` whenever Prometheus scrapes, and cost nothing in between. `stats()` also
 * has quantiles of waiting and holding times, but quantiles of several processes cannot be combined. Histograms can be
 * combined. So listeners to the client's events record these times in histograms.
 */
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { type ClientStats, LockClient, LockTimeoutError } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379', METRICS_PORT = '9464' } = process.env

/** Call this function once per client, right after creating the client. Events before this call are not counted. */
function collectLockMetrics(locks: LockClient, register: Registry): void {
  const registers = [register]

  const gauge = (name: string, help: string, read: (stats: ClientStats) => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read(locks.stats()))
      },
    })
  gauge('locks_waiting', 'Calls that are waiting.', stats => stats.waiting)
  gauge('locks_held', 'Leases that are held.', stats => stats.holding)

  const counter = (name: string, help: string, read: (stats: ClientStats) => number) =>
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset()
        this.inc(read(locks.stats()))
      },
    })
  counter('locks_released_total', 'Holds that ended by a release.', stats => stats.released)
  counter('locks_lost_total', 'Holds that ended without a release.', stats => stats.lost)
  counter('locks_renewed_total', 'Leases that were renewed.', stats => stats.renewed)
  counter('locks_timed_out_total', 'Calls that timed out.', stats => stats.timedOut)
  counter('locks_refused_total', 'Single attempts that found the lock held.', stats => stats.refused)
  counter('locks_failed_total', 'Calls that were aborted or rejected otherwise.', stats => stats.failed)
  new Counter({
    name: 'locks_acquired_total',
    help: 'Grants, by how the lock was granted.',
    labelNames: ['via'],
    registers,
    collect() {
      this.reset()
      for (const [via, count] of Object.entries(locks.stats().via)) this.inc({ via }, count)
    },
  })

  const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
  const waits = new Histogram({ name: 'locks_wait_seconds', help: 'From the call to the grant.', buckets, registers })
  const holds = new Histogram({
    name: 'locks_hold_seconds',
    help: 'From the grant to the release.',
    buckets,
    registers,
  })
  // The metrics have no label for the key, because each key would then become a separate time series.
  locks.on('acquired', ({ waited }) => waits.observe(waited / 1_000))
  locks.on('released', ({ held }) => holds.observe(held / 1_000))
}

const register = new Registry()
const locks = new LockClient(REDIS_URL)
collectLockMetrics(locks, register)

const server = createServer(async (_request, response) => {
  response.setHeader('Content-Type', register.contentType)
  response.end(await register.metrics())
})
server.listen(Number(METRICS_PORT), '127.0.0.1', () => {
  console.log(`metrics on http://127.0.0.1:${METRICS_PORT}/metrics`)
})

const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())

/** Uses one lock, so that the metrics have something to show. */
async function work(): Promise<void> {
  while (!stop.signal.aborted) {
    try {
      await locks.using('example:report', { timeout: 5_000, signal: stop.signal }, () => sleep(5))
    } catch (error) {
      if (!stop.signal.aborted && !(error instanceof LockTimeoutError)) throw error
    }
  }
}

await Promise.all([work(), work(), work()])
server.close()
await locks.close()
console.log('stopped')

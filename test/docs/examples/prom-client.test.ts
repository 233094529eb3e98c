/**
 * Tests examples/prom-client.ts: its output is parsed as Prometheus' text format, and its numbers must agree with each
 * other.
 */
import parse, { type Family } from 'parse-prometheus-text-format'
import { expect, test } from 'vitest'
import { freePort } from '../../../local-redis/port.ts'
import { eventually, sleep } from '../../kit/time.ts'
import { Scene } from './scene.ts'

const scene = new Scene()

async function scrape(url: string): Promise<Map<string, Family>> {
  const response = await fetch(url)
  expect(response.headers.get('Content-Type')).toMatch(/^text\/plain; version=0\.0\.4/)
  const families = parse(await response.text())
  return new Map(families.map(family => [family.name, family]))
}

/** Returns the value of a metric that has no labels. */
const total = (served: Map<string, Family>, name: string) => Number(served.get(name)?.metrics[0]?.value)

/** Returns the cumulative counts of the buckets in the order of their bounds, the total count, and the sum. */
function histogramOf(served: Map<string, Family>, name: string) {
  const { buckets = {}, count, sum } = served.get(name)?.metrics[0] ?? {}
  const bounds = Object.keys(buckets).filter(bound => bound !== '+Inf')
  const counts = bounds.sort((a, b) => Number(a) - Number(b)).map(bound => Number(buckets[bound]))
  return { counts, all: Number(buckets['+Inf']), count: Number(count), sum: Number(sum) }
}

test('serves gauges, counters and histograms that agree with each other, and stops on request', async () => {
  const port = await freePort()
  const worker = scene.start('prom-client.ts', { METRICS_PORT: String(port) })
  await worker.line(/^metrics on /)
  const url = `http://127.0.0.1:${port}/metrics`
  await eventually(async () => total(await scrape(url), 'locks_released_total') >= 20)

  // While the test holds the lock, all three callers wait and the numbers do not change.
  const held = await scene.locks.lock('example:report', { fair: true })
  await eventually(async () => total(await scrape(url), 'locks_waiting') === 3)
  await sleep(300)
  const still = await scrape(url)
  expect(total(still, 'locks_held')).toBe(0)
  const via = new Map(
    still.get('locks_acquired_total')?.metrics.map(({ labels, value }) => [labels?.['via'], Number(value)]),
  )
  expect([...via.keys()].sort()).toEqual(['expiry', 'handoff', 'immediate', 'reentry', 'wakeup'])
  const acquired = [...via.values()].reduce((sum, count) => sum + count, 0)
  const released = total(still, 'locks_released_total')
  expect(released).toBe(acquired)
  for (const [name, times] of [
    ['locks_wait_seconds', acquired],
    ['locks_hold_seconds', released],
  ] as const) {
    const { counts, all, count } = histogramOf(still, name)
    expect(still.get(name)?.type).toBe('HISTOGRAM')
    expect([all, count]).toEqual([times, times])
    expect(counts).toEqual([...counts].sort((a, b) => a - b))
    expect(counts.at(-1)).toBeLessThanOrEqual(all)
  }
  // Each hold lasts as long as a timer of 5 ms, which may fire up to 1 ms early.
  const holds = histogramOf(still, 'locks_hold_seconds')
  expect(holds.sum).toBeGreaterThanOrEqual(holds.count * 0.004)
  expect(holds.counts[0]).toBe(0)

  // Each of the three callers waited for at least 0.3 s while the test held the lock.
  await held.release()
  await eventually(async () => histogramOf(await scrape(url), 'locks_wait_seconds').count >= acquired + 3)
  const after = histogramOf(await scrape(url), 'locks_wait_seconds')
  expect(after.sum - histogramOf(still, 'locks_wait_seconds').sum).toBeGreaterThanOrEqual(0.3 * 3)

  for (const name of ['locks_lost_total', 'locks_timed_out_total', 'locks_failed_total', 'locks_refused_total']) {
    expect(still.get(name)?.type).toBe('COUNTER')
    expect(total(still, name)).toBe(0)
  }
  expect(await worker.end('SIGTERM')).toBe(0)
  expect(worker.lines.at(-1)).toBe('stopped')
  await scene.expectNothingLeft()
}, 70_000)

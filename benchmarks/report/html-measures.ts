/** The name and unit of each measure on the page. benchmarks/README.md defines the measures. */
import type { Measure } from '../contract.ts'

export type Unit = 'µs' | 'ms' | 'per second' | 'count' | 'share' | 'index' | 'bytes'

interface Words {
  readonly title: string
  readonly unit: Unit
  /** If set, the report highlights every value above 0, because it shows a fault. */
  readonly alarm?: true
}

export const words: Readonly<Record<Measure, Words>> = {
  acquisitions: { title: 'Acquisitions', unit: 'count' },
  throughput: { title: 'Acquisitions per second', unit: 'per second' },
  handoffP50: { title: 'Hand-off p50', unit: 'µs' },
  handoffP90: { title: 'Hand-off p90', unit: 'µs' },
  handoffP99: { title: 'Hand-off p99', unit: 'µs' },
  handoffMax: { title: 'Hand-off max', unit: 'µs' },
  crossP50: { title: 'Hand-off p50 across processes', unit: 'µs' },
  crossShare: { title: 'Hand-offs across processes', unit: 'share' },
  backToReleaser: { title: 'Back to the releaser', unit: 'share' },
  cycleP50: { title: 'Lock + release p50', unit: 'µs' },
  cycleP99: { title: 'Lock + release p99', unit: 'µs' },
  waitP50: { title: 'Wait p50', unit: 'ms' },
  waitMax: { title: 'Longest wait', unit: 'ms' },
  waitMaxFair: { title: 'Longest wait, fair callers', unit: 'ms' },
  waitMaxReaders: { title: 'Longest wait, readers', unit: 'ms' },
  waitMaxWriters: { title: 'Longest wait, writers', unit: 'ms' },
  waitMaxSmall: { title: 'Longest wait, small groups', unit: 'ms' },
  mostAtOnce: { title: 'Holders at a time', unit: 'count' },
  mostOfGroup: { title: 'Holders of one group', unit: 'count' },
  waitMaxUnfair: { title: 'Longest wait, unfair callers', unit: 'ms' },
  attempts: { title: 'Attempts per acquisition', unit: 'count' },
  secondRounds: { title: 'Grants with a second round trip', unit: 'share' },
  commands: { title: 'Commands per acquisition', unit: 'count' },
  bytes: { title: 'Bytes per acquisition', unit: 'bytes' },
  serverCpu: { title: 'Server CPU per acquisition', unit: 'µs' },
  commandTime: { title: 'Server time per command', unit: 'µs' },
  clientCpu: { title: 'Client CPU per acquisition', unit: 'µs' },
  releaseCost: { title: 'Server time per release', unit: 'µs' },
  releaseP50: { title: 'Time of the script that releases, p50', unit: 'µs' },
  jain: { title: 'Jain’s index', unit: 'index' },
  overtaken: { title: 'Overtaken by at most', unit: 'count' },
  starved: { title: 'Starved waiters', unit: 'count', alarm: true },
  overlaps: { title: 'Overlaps', unit: 'count', alarm: true },
  unfinished: { title: 'Calls that never returned', unit: 'count', alarm: true },
  errors: { title: 'Calls that rejected', unit: 'count', alarm: true },
  admission: { title: 'Time to admit all readers', unit: 'ms' },
  messages: { title: 'Messages for a writer’s release', unit: 'count' },
  drain: { title: 'Time to drain', unit: 'ms' },
  inversions: { title: 'Inverted pairs', unit: 'share' },
  nextGrant: { title: 'Next grant after the crash', unit: 'ms' },
  ordinaryHandoff: { title: 'Next grant without a crash', unit: 'ms' },
  commandsPerSecond: { title: 'Commands per second while parked', unit: 'per second' },
  residentPerWaiter: { title: 'Resident memory per waiter', unit: 'bytes' },
  heapPerWaiter: { title: 'Client heap per waiter', unit: 'bytes' },
  redisPerWaiter: { title: 'Redis memory per waiter', unit: 'bytes' },
}

const significant = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })

/** Formats a number with three significant digits. Values from 100 on are rounded to integers instead. */
export function number(value: number): string {
  return Math.abs(value) >= 100 ? whole.format(value) : significant.format(value)
}

/** Formats a value briefly, for labels of an axis: 20k for 20,000. */
export function tick(unit: Unit, value: number): string {
  if ((unit !== 'per second' && unit !== 'count') || value < 1_000) return format(unit, value)
  const short = value < 1_000_000 ? `${number(value / 1_000)}k` : `${number(value / 1_000_000)}M`
  return unit === 'count' ? short : `${short}/s`
}

/** Formats a value with its unit, scaled for reading: 1,500 µs becomes 1.5 ms. */
export function format(unit: Unit, value: number): string {
  switch (unit) {
    case 'µs':
      return duration(value)
    case 'ms':
      return duration(value * 1_000)
    case 'per second':
      return `${number(value)}/s`
    case 'share':
      return `${significant.format(value * 100)} %`
    case 'bytes':
      return scaled(value, 1_000, ['B', 'kB', 'MB', 'GB'])
    case 'index':
      return value.toFixed(2)
    case 'count':
      return number(value)
  }
}

function duration(microseconds: number): string {
  return scaled(microseconds, 1_000, ['µs', 'ms', 's'])
}

function scaled(value: number, step: number, units: readonly string[]): string {
  let [scale, i] = [1, 0]
  // The value is rounded before the comparison, so that 999.9 µs becomes 1 ms and not 1,000 µs.
  while (i < units.length - 1 && Math.abs(Math.round(value / scale)) >= step) {
    scale *= step
    i++
  }
  return `${number(value / scale)} ${units[i]}`
}

/** Makes the first letter a capital. */
export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

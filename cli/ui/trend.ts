/**
 * Records how long the waiters have waited at each reading of all locks, and draws a chart of these waits over the last
 * minutes.
 */
import { scaleLinear } from 'd3-scale'
import { area, line } from 'd3-shape'
import { showTimeBriefly } from '../times.ts'
import type { TrendLines } from './page/messages.ts'

/** The time span of the chart, in ms. */
export const SPAN = 300_000
/** Readings of all locks within this many ms become one point, so that there are no more points than pixels. */
const POINT = 1_000
/** The size of the chart. */
const [WIDTH, HEIGHT] = [600, 100]

interface Point {
  /** When the locks were read, on the monotonic clock, in ms. */
  readonly at: number
  readonly longest: number
  readonly median: number
  /** Whether more than the `gap` of `add` passed between the previous point and this one. If so, the line has a gap. */
  readonly apart: boolean
}

export class Trend {
  readonly #points: Point[] = []

  /**
   * Adds the waits that one reading of all locks has found. `waits` has one entry per current waiter: how long it has
   * waited, in ms. If more than `gap` ms have passed since the previous reading, the chart has a gap.
   */
  add(at: number, waits: readonly number[], gap: number): void {
    const sorted = Float64Array.from(waits).sort()
    const longest = sorted.at(-1) ?? 0
    const median = sorted[sorted.length >> 1] ?? 0
    const last = this.#points.at(-1)
    if (last && at - last.at < POINT) {
      this.#points[this.#points.length - 1] = { ...last, longest: Math.max(longest, last.longest), median }
    } else {
      this.#points.push({ at, longest, median, apart: last !== undefined && at - last.at > gap })
    }
    const begin = this.#points.findIndex(point => point.at >= at - SPAN)
    this.#points.splice(0, begin)
  }

  /** Whether there was no waiter during the whole time span of the chart. */
  get empty(): boolean {
    return this.#points.every(({ longest }) => longest === 0)
  }

  /** Draws the chart. `now` is the time at its right edge. */
  drawn(now: number): TrendLines {
    const most = Math.max(1_000, ...this.#points.map(({ longest }) => longest))
    const y = scaleLinear([0, most], [HEIGHT, 0]).nice(2)
    const x = scaleLinear([now - SPAN, now], [0, WIDTH])
    // An undefined point between two points breaks the line.
    const points = this.#points.flatMap(point => (point.apart ? [undefined, point] : [point]))
    const at = (point: Point | undefined) => x(point?.at ?? 0)
    const of = (figure: 'longest' | 'median') => (point: Point | undefined) => y(point?.[figure] ?? 0)
    const draw = (figure: 'longest' | 'median') =>
      line(at, of(figure))
        .defined(point => point !== undefined)
        .digits(1)(points) ?? ''
    const below = area(at, HEIGHT, of('longest')).defined(point => point !== undefined)
    const last = this.#points.at(-1)
    const waiting = last !== undefined && last.longest > 0
    return {
      longest: waiting ? showTimeBriefly(last.longest) : '–',
      median: waiting ? showTimeBriefly(last.median) : '–',
      top: this.empty ? '' : showTimeBriefly(y.domain()[1]!),
      area: below.digits(1)(points) ?? '',
      line: draw('longest'),
      middle: draw('median'),
    }
  }
}

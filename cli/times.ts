/** Parses and formats times such as `30s`. */
import { InvalidArgumentError } from 'commander'
import ms, { type StringValue } from 'ms'
import prettyMilliseconds from 'pretty-ms'
import { LONGEST } from '../src/clock.ts'

/** Parses `30s`, `500ms`, `2m`, `1h` into ms. A number without a unit could mean s or ms, so only 0 is accepted. */
export function parseTime(text: string): number {
  if (text === '0') return 0
  const parsed = /^\d/.test(text) && /[a-z]$/i.test(text) ? ms(text as StringValue) : undefined
  if (parsed === undefined) throw new InvalidArgumentError('It must be a time with its unit, such as 500ms, 30s or 2m.')
  // A timer with a longer delay would fire at once.
  if (parsed > LONGEST) throw new InvalidArgumentError('It must be at most 24 days (24d).')
  return parsed
}

/**
 * The shortest interval at which `baton top` and `baton ui` may read all locks from Redis, in ms. With a shorter
 * interval, the display would look no smoother.
 */
const LEAST_INTERVAL = 100

/** Like `parseTime`, for the interval at which `baton top` or `baton ui` reads all locks. */
export function parseInterval(text: string): number {
  const interval = parseTime(text)
  if (interval < LEAST_INTERVAL) throw new InvalidArgumentError(`It must be at least ${LEAST_INTERVAL}ms.`)
  return interval
}

/** Formats a time for a sentence, exact to a tenth of a second. */
export function showTime(milliseconds: number): string {
  return prettyMilliseconds(Math.max(0, milliseconds), { unitCount: 2, secondsDecimalDigits: 1 })
}

/** Formats a time for a view that is redrawn often: without tenths from ten seconds on, because they would flicker. */
export function showTimeBriefly(milliseconds: number): string {
  return showTime(milliseconds < 10_000 ? milliseconds : Math.round(milliseconds / 1_000) * 1_000)
}

/** Times as people write and read them. */
import { InvalidArgumentError } from 'commander'
import ms, { type StringValue } from 'ms'
import prettyMilliseconds from 'pretty-ms'
import { LONGEST } from '../src/clock.ts'

/** `30s`, `500ms`, `2m`, `1h`: in ms. A number alone could be either of the first two, so it is refused; but for 0. */
export function parseTime(text: string): number {
  if (text === '0') return 0
  const parsed = /^\d/.test(text) && /[a-z]$/i.test(text) ? ms(text as StringValue) : undefined
  if (parsed === undefined) throw new InvalidArgumentError('It must be a time with its unit, such as 500ms, 30s or 2m.')
  // A timer that is set for longer goes off at once.
  if (parsed > LONGEST) throw new InvalidArgumentError('It must be at most 24d.')
  return parsed
}

/** How often a view looks at Redis: often enough to be called live is often enough. */
const LEAST_INTERVAL = 100

/** As `parseTime`, for the interval of a view. */
export function parseInterval(text: string): number {
  const interval = parseTime(text)
  if (interval < LEAST_INTERVAL) throw new InvalidArgumentError(`It must be at least ${LEAST_INTERVAL}ms.`)
  return interval
}

/** As in texts: exact to a tenth of a second. */
export function showTime(milliseconds: number): string {
  return prettyMilliseconds(Math.max(0, milliseconds), { unitCount: 2, secondsDecimalDigits: 1 })
}

/** The same for a view that is drawn anew all the time: without tenths, which would only flicker, from ten seconds on. */
export function showTimeBriefly(milliseconds: number): string {
  return showTime(milliseconds < 10_000 ? milliseconds : Math.round(milliseconds / 1_000) * 1_000)
}

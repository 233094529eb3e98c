/** Times as people write and read them. */
import { InvalidArgumentError } from 'commander'
import ms, { type StringValue } from 'ms'
import prettyMilliseconds from 'pretty-ms'

/** `30s`, `500ms`, `2m`, `1h`: in ms. A number alone could be either of the first two, so it is refused. */
export function parseTime(text: string): number {
  const parsed = /^\d/.test(text) && /[a-z]$/i.test(text) ? ms(text as StringValue) : undefined
  if (parsed === undefined) throw new InvalidArgumentError('It must be a time with its unit, such as 500ms, 30s or 2m.')
  return parsed
}

export function showTime(milliseconds: number): string {
  return prettyMilliseconds(Math.max(0, milliseconds), { unitCount: 2, secondsDecimalDigits: 1 })
}

/**
 * What Redis's commands take and answer, as text.
 *
 * Redis's strings are bytes. Here such a string is a JavaScript string with one character for each byte, so that Lua can
 * cut it anywhere, and `<` compares it as Redis does.
 */

/** An error as a reply, of a command or a script. Its first word is its code. */
export class ErrorReply extends Error {
  override readonly name = 'ReplyError'
}

/** A status as a reply, such as +OK. Lua gets a table, a client a text. */
export class Status {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** What a command answers. */
export type CommandReply = string | number | null | Status | readonly CommandReply[]

export const OK = new Status('OK')

const beyondAscii = /[\u0080-\uffff]/

export function bytesOf(text: string): string {
  return beyondAscii.test(text) ? Buffer.from(text).toString('latin1') : text
}

export function textOf(bytes: string): string {
  return beyondAscii.test(bytes) ? Buffer.from(bytes, 'latin1').toString() : bytes
}

/** "%.17g" of C: so Redis writes scores, and numbers that Lua passes to a command. From 7.2 on, Redis writes fractions shorter. */
export function written(number: number): string {
  if (Number.isSafeInteger(number)) return Object.is(number, -0) ? '-0' : String(number)
  if (!Number.isFinite(number)) return Number.isNaN(number) ? 'nan' : number > 0 ? 'inf' : '-inf'
  const exponent = Number(number.toExponential(16).split('e')[1])
  if (exponent >= -4 && exponent < 17) return number.toFixed(16 - exponent).replace(/\.?0+$/, '')
  const [digits, power] = number.toExponential(16).split('e') as [string, string]
  return `${digits.replace(/\.?0+$/, '')}e${power[0]}${power.slice(1).padStart(2, '0')}`
}

/** The score that a text stands for; undefined: none. */
export function scoreOf(text: string): number | undefined {
  if (/^[+-]?inf(inity)?$/i.test(text))
    return text.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : undefined
}

/** The whole number of 64 bits that a text stands for; undefined: none. */
export function integerOf(text: string): bigint | undefined {
  if (!/^(0|-?[1-9]\d{0,18})$/.test(text)) return undefined
  const number = BigInt(text)
  return fits(number) ? number : undefined
}

export function fits(number: bigint): boolean {
  return BigInt.asIntN(64, number) === number
}

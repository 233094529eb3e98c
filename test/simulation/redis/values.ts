/**
 * The arguments and replies of Redis commands.
 *
 * Redis strings consist of bytes. Here such a string is a JavaScript string with one character for each byte, so that
 * Lua can cut it anywhere, and `<` compares it like Redis.
 */

/** An error reply of a command or a script. The first word of its message is the code. */
export class ErrorReply extends Error {
  override readonly name = 'ReplyError'
}

/** A status reply, such as +OK. Lua receives it as a table, and a client receives it as a text. */
export class Status {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export type CommandReply = string | number | null | Status | readonly CommandReply[]

export const OK = new Status('OK')

const beyondAscii = /[\u0080-\uffff]/

export function bytesOf(text: string): string {
  return beyondAscii.test(text) ? Buffer.from(text).toString('latin1') : text
}

export function textOf(bytes: string): string {
  return beyondAscii.test(bytes) ? Buffer.from(bytes, 'latin1').toString() : bytes
}

/**
 * Formats a number like "%.17g" in C. Redis before 7.2 formats scores in this way, and also the numbers that Lua passes
 * to a command. Later versions write fractions with fewer digits.
 */
export function written(number: number): string {
  if (Number.isSafeInteger(number)) return Object.is(number, -0) ? '-0' : String(number)
  if (!Number.isFinite(number)) return Number.isNaN(number) ? 'nan' : number > 0 ? 'inf' : '-inf'
  const exponent = Number(number.toExponential(16).split('e')[1])
  if (exponent >= -4 && exponent < 17) return number.toFixed(16 - exponent).replace(/\.?0+$/, '')
  const [digits, power] = number.toExponential(16).split('e') as [string, string]
  return `${digits.replace(/\.?0+$/, '')}e${power[0]}${power.slice(1).padStart(2, '0')}`
}

/** Parses a score. Returns undefined if the text is not a score. */
export function scoreOf(text: string): number | undefined {
  if (/^[+-]?inf(inity)?$/i.test(text))
    return text.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : undefined
}

/** Parses a 64-bit integer. Returns undefined if the text is not a 64-bit integer. */
export function integerOf(text: string): bigint | undefined {
  if (!/^(0|-?[1-9]\d{0,18})$/.test(text)) return undefined
  const number = BigInt(text)
  return fits(number) ? number : undefined
}

export function fits(number: bigint): boolean {
  return BigInt.asIntN(64, number) === number
}

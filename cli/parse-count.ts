import { InvalidArgumentError } from 'commander'

/** Parses the value of an option that counts something. */
export function parseCount(text: string): number {
  const number = Number(text)
  if (/^\d+$/.test(text) && number >= 1 && Number.isSafeInteger(number)) return number
  throw new InvalidArgumentError('It must be a whole number, at least 1.')
}

/**
 * Keys, labels and owners are untrusted text. Characters that would move a cursor, hide a line, ring a bell or change
 * the direction of writing are replaced by visible escapes and never reach a terminal as they are.
 */

/**
 * Control characters, invisible format characters (direction, zero width), line ends, lone surrogates, and every accent
 * after the third on one letter. No writing system needs more accents on a letter, and piled-up accents could cover the
 * lines above.
 */
const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?<=\p{M}{3})\p{M}/gu

/** Returns the text as one line for a terminal: an escape character appears as `\u{1b}`. */
export function printable(text: string): string {
  return text.replace(unprintable, character => `\\u{${character.codePointAt(0)!.toString(16)}}`)
}

/** Returns the value as JSON. Escapes make it harmless on a terminal, and programs parse it to the same value. */
export function printableJson(value: unknown): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  return JSON.stringify(value).replace(unprintable, character => character.split('').map(escaped).join(''))
}

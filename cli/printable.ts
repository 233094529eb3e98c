/**
 * Keys, labels and owners are somebody else's text. What in it would move a cursor, hide a line, ring a bell or turn the
 * direction of writing is shown as what it is, and never reaches a terminal as it stands.
 */

/**
 * Controls, invisible formats (among them those of direction and of no width), line ends, halves of characters; and
 * accents that are piled up until they cover the lines above, of which no script puts more than three on a letter.
 */
const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?<=\p{M}{3})\p{M}/gu

/** The text in one line, for a terminal: `\u{1b}` stands for an escape. */
export function printable(text: string): string {
  return text.replace(unprintable, character => `\\u{${character.codePointAt(0)!.toString(16)}}`)
}

/** The value as JSON that says the same to a program, and is as harmless on a terminal. */
export function printableJson(value: unknown): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  return JSON.stringify(value).replace(unprintable, character => character.split('').map(escaped).join(''))
}

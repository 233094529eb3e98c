/**
 * Distinguishes options from operands in a command line that commander has not parsed yet, by the same rules as
 * commander.
 */
import type { Command, Option } from 'commander'

/**
 * Returns the positions of the words, up to `--`, that are neither options of this command nor their values. Unknown
 * options are assumed to have no value.
 */
export function operandsIn(command: Command, words: readonly string[]): number[] {
  const found: number[] = []
  for (let i = 0; i < words.length && words[i] !== '--'; i++) {
    const word = words[i]!
    if (!word.startsWith('-')) found.push(i)
    else if (!word.includes('=') && takesValue(optionOf(command, word))) i++
  }
  return found
}

export function optionOf(command: Command, word: string): Option | undefined {
  const [name] = word.split('=')
  return command.options.find(({ long, short }) => name === long || name === short)
}

export function takesValue(option: Option | undefined): boolean {
  return option !== undefined && (option.required || option.optional)
}

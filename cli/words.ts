/** The words of a command line, told apart as commander tells them apart, before it does or where it cannot. */
import type { Command, Option } from 'commander'

/** Where words stand that are neither options of this command nor their values, up to `--`. Of others' options no value is known. */
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

/** Makes the hint for a user who has left out the `--` of `baton run`: the same command line with `--`. */
import type { Command } from 'commander'
import { parseAddress } from '../address.ts'
import { operandsIn } from '../words.ts'

/**
 * Returns a hint with the corrected command line, or undefined in two cases:
 *
 *  1. The user has given no command, or the command comes after `--` as it should.
 *  2. Commander has refused the option `word` as unknown, and this option comes before the command. In this case, a
 *     `--` before the command would not help.
 * @param words the words after the program's name
 */
export function missingDashes(words: readonly string[], run: Command, word?: string): string | undefined {
  const behind = operandsIn(run.parent!, words)[0]! + 1
  const [, command] = operandsIn(run, words.slice(behind))
  if (command === undefined) return undefined
  const begin = behind + command
  if (word !== undefined && words.indexOf(word) < begin) return undefined
  const line = ['baton', ...withoutSecrets(words.slice(0, begin)), '--', ...words.slice(begin)].map(quoted).join(' ')
  return `put \`--\` before the command: \`${line}\``
}

function withoutSecrets(words: readonly string[]): string[] {
  return words.map((word, i) => {
    const [, option, value] = /^(--url=)(.*)$/s.exec(word) ?? ['', '', words[i - 1] === '--url' ? word : undefined]
    if (value === undefined) return word
    return `${option}${parseAddress(value)?.shown ?? '…'}`
  })
}

/** Quotes the word if necessary, so that a shell takes it for one word. */
function quoted(word: string): string {
  return /^[\w%+,./:=@^…-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`
}

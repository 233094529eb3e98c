/** Finds what may come next in an unfinished command line. The source is commander's tree of commands. */
import type { Command, Option } from 'commander'
import { optionOf, takesValue } from '../words.ts'

export interface Candidate {
  readonly value: string
  readonly description: string
}

/**
 * What may come next. `keys`: names of locks that begin with the given text. `command`: words of another program's
 * command line, which begins after `--`.
 */
export type Next =
  | { readonly kind: 'words'; readonly words: readonly Candidate[] }
  | ({ readonly kind: 'keys' } & KeysWanted)
  | { readonly kind: 'files' }
  | { readonly kind: 'command' }

export interface KeysWanted {
  readonly beginning: string
  /** One entry for each `--url`. */
  readonly urls?: readonly string[]
  readonly prefix?: string
}

/** The `--url` and `--prefix` options that the command line contains. */
type Given = Omit<KeysWanted, 'beginning'>

const nothing: Next = { kind: 'words', words: [] }

/**
 * Returns what may come next in the command line. `words` are the words after the program's name, as the user typed
 * them. The last word is unfinished and may be empty.
 */
export function nextOf(program: Command, words: readonly string[]): Next {
  const written = words.slice(0, -1).map(unquoted)
  const last = unquoted(words.at(-1) ?? '')
  let command = program
  let operands = 0
  let given: Given = {}
  /** The values of `--url` after the command's name. If there are none, the values before the command's name. */
  let urls: string[] = []
  for (let i = 0; i < written.length; i++) {
    const word = written[i]!
    if (word === '--') return command.name() === 'run' ? { kind: 'command' } : operand(command, operands, last, given)
    const option = word.startsWith('-') ? optionOf(command, word) : undefined
    if (option && takesValue(option)) {
      const [, inside] = /^--[^=]+=(.*)$/s.exec(word) ?? []
      if (inside === undefined && i + 1 === written.length) return valuesFor(option, last, given)
      const value = inside ?? written[++i]!
      if (option.long === '--prefix' && value !== '') given = { ...given, prefix: value }
      else if (option.long === '--url') {
        urls.push(value)
        given = { ...given, urls }
      }
    } else if (!word.startsWith('-')) {
      const subcommand = command.commands.find(one => one.name() === word)
      if (subcommand) {
        command = subcommand
        urls = []
      } else if (command === program && word !== 'help') return nothing
      else operands++
    }
  }
  if (last.startsWith('-')) return beginningWith(last, optionsOf(command))
  return operand(command, operands, last, given)
}

function operand(command: Command, index: number, last: string, given: Given): Next {
  if (command.commands.length > 0) return beginningWith(last, commandsOf(command))
  const { registeredArguments: all } = command
  const argument = all[index] ?? all.findLast(({ variadic }) => variadic)
  if (argument?.name() === 'key') return keysWith(last, given)
  // After the key of `run` comes `--`.
  if (argument?.name() === 'command') return beginningWith(last, [{ value: '--', description: 'the command follows' }])
  return beginningWith(
    last,
    (argument?.argChoices ?? []).map(value => ({ value, description: '' })),
  )
}

function valuesFor(option: Option, last: string, given: Given): Next {
  if (option.flags.includes('<file>')) return { kind: 'files' }
  if (option.flags.includes('<key>')) return keysWith(last, given)
  return { kind: 'words', words: (option.argChoices ?? []).map(value => ({ value, description: '' })) }
}

function keysWith(beginning: string, given: Given): Next {
  return { kind: 'keys', beginning, ...given }
}

function beginningWith(beginning: string, all: readonly Candidate[]): Next {
  return { kind: 'words', words: all.filter(({ value }) => value.startsWith(beginning)) }
}

function commandsOf(command: Command): Candidate[] {
  const visible = command.createHelp().visibleCommands(command)
  return visible.map(one => ({ value: one.name(), description: one.description() }))
}

function optionsOf(command: Command): Candidate[] {
  const visible = command.createHelp().visibleOptions(command)
  return visible.flatMap(({ long, description }) => (long ? [{ value: long, description }] : []))
}

/**
 * Returns the word as the program would receive it. Variables are not expanded. A trailing \ is dropped, because the
 * character that it escapes is not typed yet.
 */
function unquoted(word: string): string {
  return word.replace(/\\(.?)|["']/gs, '$1')
}

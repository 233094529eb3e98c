/** What may come next in a line that is being written: read from the tree of commands as commander has it. */
import type { Command, Option } from 'commander'
import { optionOf, takesValue } from '../words.ts'

export interface Candidate {
  readonly value: string
  readonly description: string
}

/** `keys`: the names of locks that begin so. `command`: the rest is the line of another program, behind `--`. */
export type Next =
  | { readonly kind: 'words'; readonly words: readonly Candidate[] }
  | ({ readonly kind: 'keys' } & KeysWanted)
  | { readonly kind: 'files' }
  | { readonly kind: 'command' }

export interface KeysWanted {
  readonly beginning: string
  /** As given in the line. */
  /** As often as `--url` is given. */
  readonly urls?: readonly string[]
  readonly prefix?: string
}

/** What says where the names are, as far as the line has it. */
type Given = Omit<KeysWanted, 'beginning'>

const nothing: Next = { kind: 'words', words: [] }

/** `words`: behind the name of the program, as they stand in the line; the last one is being written, and may be empty. */
export function nextOf(program: Command, words: readonly string[]): Next {
  const written = words.slice(0, -1).map(unquoted)
  const last = unquoted(words.at(-1) ?? '')
  let command = program
  let operands = 0
  let given: Given = {}
  /** Of this command, or of the program as long as there is none: as the program itself takes them. */
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
  // What follows the key of `run` follows --.
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

/** A word as the program would get it. Variables are not looked up; and where it ends in a \, its end is yet to come. */
function unquoted(word: string): string {
  return word.replace(/\\(.?)|["']/gs, '$1')
}

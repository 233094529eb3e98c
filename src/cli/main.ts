#!/usr/bin/env node
/**
 * The program `baton`: one file per command, which adds itself. A command is started often, by scripts, and with it only
 * its own file is loaded; all of them are where somebody asks what there is.
 */
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { LockArgumentError } from '../errors.ts'
import { messageOf } from '../local-redis/error-message.ts'
import { addCompletion } from './completion.ts'
import { exitCodes, Failure, warn } from './failure.ts'
import { printable } from './printable.ts'

type Add = (program: Command) => void

/** In the order of the help. */
const commands: Readonly<Record<string, () => Promise<Add>>> = {
  run: async () => (await import('./run.ts')).addRun,
  inspect: async () => (await import('./inspect.ts')).addInspect,
  list: async () => (await import('./list.ts')).addList,
  top: async () => (await import('./top.ts')).addTop,
  ui: async () => (await import('./ui.ts')).addUi,
  release: async () => (await import('./release.ts')).addRelease,
  bench: async () => (await import('./bench.ts')).addBench,
  demo: async () => (await import('./demo.ts')).addDemo,
}

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

for (const stream of [process.stdout, process.stderr]) stream.on('error', unheard)
const [asked, , firstWord] = process.argv.slice(2)
// A line that is being completed stands behind --.
const program = await programFor(asked === '__complete' ? firstWord : asked)
try {
  await program.parseAsync()
} catch (error) {
  process.exitCode = complain(error)
}

async function programFor(asked: string | undefined): Promise<Command> {
  const program = new Command('baton')
    .description('A blocking lock for Redis, from the command line.')
    .version(version)
    // Before the commands, which inherit it.
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(`${complaint(text)}\n`) })
  const own = asked !== undefined && Object.hasOwn(commands, asked) ? [asked] : Object.keys(commands)
  for (const name of own) (await commands[name]!())(program)
  addCompletion(program)
  return program
}

/** One line: what is wrong, and the nearest name that is right. */
function complaint(text: string): string {
  const line = text
    .trim()
    .replaceAll('\n', ' ')
    .replace(/^error: /, 'baton: ')
  const words = process.argv.slice(2)
  if (!/unknown (command|option)/.test(line)) return printable(line)
  const behind = words[0] === 'run' && !words.includes('--') ? '; the command to run stands behind --' : ''
  const help = line.includes('Did you mean') || behind ? '' : '; baton --help says what there is'
  return printable(`${line}${behind}${help}`)
}

/** The exit code for it. */
function complain(error: unknown): number {
  // Help and version also end this way, with exit code 0. The message has been printed already.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodes.usage
  if (error instanceof Failure) {
    // A list of what has been tried has a line for each.
    console.error(`baton: ${error.message.split('\n').map(printable).join('\n')}`)
    return error.exitCode
  }
  warn(messageOf(error))
  return error instanceof LockArgumentError ? exitCodes.usage : exitCodes.fault
}

/** A reader that has gone away, as in `baton list | head -1`, is no failure. Neither can be told to it. */
function unheard(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') process.exitCode = exitCodes.notWritten
}

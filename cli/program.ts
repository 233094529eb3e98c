/**
 * The commands of the program `baton`. Each command has a file of its own. Scripts start commands often, so only the file of the given
 * command is loaded, or all files if the user asks for help.
 */
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { messageOf } from '../local-redis/error-message.ts'
import { packageRoot } from '../local-redis/package-root.ts'
import { addressHelp } from './address.ts'
import { checkArguments } from './bytes.ts'
import { addCompletion } from './completion.ts'
import { withConnection } from './connection.ts'
import { exitCodes, Failure, hasCode, warn } from './failure.ts'
import { printable } from './printable.ts'
import { missingDashes } from './run/dashes.ts'
import { operandsIn } from './words.ts'

type Add = (program: Command) => void

/** The commands, in the same order as in the help. */
const commands: Readonly<Record<string, () => Promise<Add>>> = {
  run: async () => (await import('./run.ts')).addRun,
  inspect: async () => (await import('./inspect.ts')).addInspect,
  list: async () => (await import('./list.ts')).addList,
  top: async () => (await import('./top.ts')).addTop,
  ui: async () => (await import('./ui.ts')).addUi,
  release: async () => (await import('./release.ts')).addRelease,
  dashboard: async () => (await import('./dashboard.ts')).addDashboard,
  bench: async () => (await import('./bench.ts')).addBench,
  demo: async () => (await import('./demo.ts')).addDemo,
}

const { version } = JSON.parse(readFileSync(new URL('package.json', packageRoot), 'utf8'))

const words = process.argv.slice(2)
const program = withConnection(new Command('baton'))
  .description('Locks in Redis, from the command line.')
  .version(version)
  // Options after the command's name belong to the command.
  .enablePositionalOptions()
  .addHelpText('after', addressHelp)
  // These settings are made before the commands are added, because each added command inherits them.
  .exitOverride()
  .configureOutput({ outputError: (text, write) => write(`${complaint(text)}\n`) })
  .hook('preSubcommand', handDown)
/**
 * Index of the first word that the user typed. When a shell completes a line, `__complete --` comes before that word.
 */
const behind = words[0] === '__complete' ? 2 : 0
const at = behind + (operandsIn(program, words.slice(behind))[0] ?? words.length)

/** Does what the command line says, and sets the exit code. */
export async function perform(): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', unheard)
  try {
    checkArguments()
    await addCommands(words[at])
    await program.parseAsync()
  } catch (error) {
    process.exitCode = complain(error)
  }
}

async function addCommands(asked: string | undefined): Promise<void> {
  const own = asked !== undefined && Object.hasOwn(commands, asked) ? [asked] : Object.keys(commands)
  for (const name of own) (await commands[name]!())(program)
  addCompletion(program)
}

/** Gives the command the options that stand before its name, as if the user had typed them after the name. */
function handDown(_: Command, command: Command): void {
  for (const option of program.options) {
    const name = option.attributeName()
    if (program.getOptionValueSource(name) !== 'cli') continue
    if (!command.options.some(own => own.attributeName() === name))
      command.error(`error: unknown option '${option.long}'`)
    command.setOptionValueWithSource(name, program.getOptionValue(name), 'cli')
  }
}

/** Returns commander's error message as one line. If a name is unknown, the line also helps to find the right one. */
function complaint(text: string): string {
  const line = text
    .trim()
    .replaceAll('\n', ' ')
    .replace(/^error: /, 'baton: ')
  const [, unknown] = /unknown option '(.*?)'/.exec(line) ?? []
  const run =
    unknown !== undefined && words[at] === 'run' ? program.commands.find(one => one.name() === 'run') : undefined
  const missing = run && missingDashes(words, run, unknown)
  if (missing) return printable(`${line.replace(/ \(Did you mean .*\)$/, '')}; ${missing}`)
  const help = /unknown (command|option)/.test(line) && !line.includes('Did you mean')
  return printable(help ? `${line}; baton --help lists the commands and options` : line)
}

/** Prints the error, and returns its exit code. */
function complain(error: unknown): number {
  // Commander has already printed its message. Help and version also end with a CommanderError, whose exit code is 0.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodes.usage
  if (error instanceof Failure) {
    // Some messages list several attempts, one per line. So each line is made printable on its own.
    console.error(`baton: ${error.message.split('\n').map(printable).join('\n')}`)
    return error.exitCode
  }
  warn(messageOf(error))
  return hasCode(error, 'ERR_LOCK_ARGUMENT') ? exitCodes.usage : exitCodes.fault
}

/**
 * Handles errors of writing to stdout and stderr. Such an error cannot be printed, so only the exit code reports the
 * error. A closed pipe, as in `baton list | head -1`, does not count as an error.
 */
function unheard(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') process.exitCode = exitCodes.notWritten
}

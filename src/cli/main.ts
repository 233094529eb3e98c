#!/usr/bin/env node
/** The program `baton`: one file per command, each of which adds itself. */
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { LockArgumentError } from '../index.ts'
import { addBench } from './bench.ts'
import { addDemo } from './demo.ts'
import { exitCodes, Failure } from './failure.ts'
import { addInspect } from './inspect.ts'
import { addList } from './list.ts'
import { addRelease } from './release.ts'
import { addRun } from './run.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

const program = new Command('baton')
  .description('A blocking lock for Redis, from the command line.')
  .version(version)
  // Before the commands, which inherit it. A complaint is one line: what is wrong, and the nearest name that is right.
  .exitOverride()
  .configureOutput({ outputError: (text, write) => write(`${text.trim().replaceAll('\n', ' ')}\n`) })

for (const add of [addRun, addInspect, addList, addRelease, addBench, addDemo]) add(program)

try {
  await program.parseAsync()
} catch (error) {
  if (error instanceof CommanderError) {
    // Help and version also end this way, with exit code 0. The message has been printed already.
    process.exitCode = error.exitCode === 0 ? 0 : exitCodes.usage
  } else if (error instanceof Failure || error instanceof LockArgumentError) {
    console.error(`baton: ${error.message}`)
    process.exitCode = error instanceof Failure ? error.exitCode : exitCodes.usage
  } else throw error
}

#!/usr/bin/env node
/** The program `baton`: one file per command, each of which adds itself. */
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { addBench } from './bench.ts'
import { addDemo } from './demo.ts'

/** Unusable arguments, as in sysexits.h. */
const usage = 64

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

const program = new Command('baton')
  .description('A blocking lock for Redis, from the command line.')
  .version(version)
  .exitOverride() // before the commands: they inherit it

addDemo(program)
addBench(program)

try {
  await program.parseAsync()
} catch (error) {
  // Help and version also end this way, with exit code 0. The message has been printed already.
  if (!(error instanceof CommanderError)) throw error
  process.exitCode = error.exitCode === 0 ? 0 : usage
}

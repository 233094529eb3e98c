/**
 * Runs the terminal sessions that the documentation's pages show, for example:
 *
 *     $ redis-cli hget 'lock:{order}' clock
 *     "1795262851234567"
 *
 * Each command is run, and its output is compared with the lines below it, by the rules of printed.ts. The shell runs
 * all commands except redis-cli. This module stands in for redis-cli, because not every machine with a Redis has it.
 * The module sends the command to Redis, and prints the reply as redis-cli does on a terminal. Besides plain commands
 * of Redis, the module understands:
 *  --eval name.lua keys… , args…   runs a script of lua/, as scripts/lua-texts.ts writes it
 *  --scan --pattern <pattern>      prints the names of the keys that match
 *  subscribe <channel> &           the channel's messages appear under the commands that follow
 * Tokens and tickets differ from run to run. If a command repeats a token or ticket that is shown above it, the command
 * is run with the real one.
 */
import assert from 'node:assert/strict'
import type { Redis } from 'ioredis'
import { usualTexts } from '../../scripts/lua/usual-texts.ts'
import { matches } from './printed.ts'
import type { Scene } from './scene.ts'

/** A token or a ticket: 16 digits. */
const STAMP = /\b\d{16}\b/g
/** The time within which a message has to arrive, in ms. */
const MESSAGE_WITHIN = 2_000

export async function session({ redis, sh }: Pick<Scene, 'redis' | 'sh'>, text: string): Promise<void> {
  const listening: Redis[] = []
  const messages: string[] = []
  const came = new Map<string, string>()
  try {
    for (const { command: line, shown } of stepsOf(text)) {
      const command = line.replaceAll(STAMP, stamp => came.get(stamp) ?? stamp)
      const [program, ...words] = wordsOf(command)
      const answered: string[] = []
      if (program !== 'redis-cli') {
        const { output, errors } = await sh(command)
        // The errors are put before the output, because a page may have two commands on one line: the first prints an
        // error, and then `echo` prints its output.
        answered.push(`${errors}${output}`)
      } else if (words.at(-1) === '&') listening.push(await listen(redis, words.slice(1, -1), messages))
      else answered.push(await answer(redis, words))
      // A message may arrive before or after the command's reply, so wait a while for messages.
      const printed = () => [...answered, ...messages].join('\n')
      const until = Date.now() + (listening.length > 0 ? MESSAGE_WITHIN : 0)
      while (!matches(shown, printed()) && Date.now() < until) await new Promise(resolve => setTimeout(resolve, 10))
      assert.ok(matches(shown, printed()), `${command}\nprinted:\n${printed()}`)
      const stamps = printed().match(STAMP) ?? []
      for (const [i, stamp] of (shown.match(STAMP) ?? []).entries()) came.set(stamp, stamps[i] ?? stamp)
      messages.length = 0
    }
  } finally {
    for (const each of listening) each.disconnect()
  }
}

/** Returns the commands, each with the lines below it. Lines that begin with # are comments for the reader. */
function stepsOf(text: string): { command: string; shown: string }[] {
  const steps: { command: string; shown: string[] }[] = []
  const lines = text
    .replaceAll(/ \\\n\s*/g, ' ')
    .split('\n')
    .filter(line => !line.startsWith('#'))
  for (const line of lines) {
    if (line.startsWith('$ ')) steps.push({ command: line.slice('$ '.length), shown: [] })
    else if (steps.length > 0) steps.at(-1)!.shown.push(line)
    else if (line.trim() !== '') throw new Error(`no command stands above: ${line}`)
  }
  return steps.map(({ command, shown }) => ({ command, shown: shown.join('\n').trimEnd() }))
}

function wordsOf(command: string): string[] {
  return [...command.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(match => match[1] ?? match[2] ?? match[3] ?? '')
}

async function answer(redis: Redis, words: readonly string[]): Promise<string> {
  const [command = '', ...rest] = words
  if (command === '--scan') return written(await namesLike(redis, rest[1] ?? '*'))
  const reply = command === '--eval' ? evaluate(redis, rest) : redis.call(command, ...rest)
  return written(await reply.catch((error: Error) => error))
}

async function namesLike(redis: Redis, pattern: string): Promise<string[]> {
  const names: string[] = []
  for await (const page of redis.scanStream({ match: pattern })) names.push(...(page as string[]))
  return names.sort()
}

function evaluate(redis: Redis, [file = '', ...words]: readonly string[]): Promise<unknown> {
  const name = file.replace(/\.lua$/, '').replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
  const lua = usualTexts[name as keyof typeof usualTexts]
  const comma = words.indexOf(',')
  return redis.eval(lua, comma, ...words.slice(0, comma), ...words.slice(comma + 1))
}

async function listen(redis: Redis, channels: readonly string[], messages: string[]): Promise<Redis> {
  const ear = redis.duplicate()
  ear.on('message', (channel, text) => messages.push(written(['message', channel, text])))
  const count = await ear.subscribe(...channels)
  messages.push('Reading messages... (press Ctrl-C to quit)', written(['subscribe', channels.join(' '), count]))
  return ear
}

function written(reply: unknown, indent = ''): string {
  if (reply === null || reply === undefined) return '(nil)'
  if (reply instanceof Error) return `(error) ${reply.message}`
  if (typeof reply === 'number') return `(integer) ${reply}`
  if (!Array.isArray(reply)) return JSON.stringify(String(reply))
  if (reply.length === 0) return '(empty array)'
  const width = String(reply.length).length
  const inner = `${indent}${' '.repeat(width + 2)}`
  const lines = reply.map((each, i) => `${String(i + 1).padStart(width)}) ${written(each, inner)}`)
  return lines.join(`\n${indent}`)
}

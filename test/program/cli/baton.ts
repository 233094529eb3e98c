/** Runs the built program in a process of its own, as a user would. */
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import { printedBy } from '../../kit/printed.ts'
import { redisUrl } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'

const program = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url))

/** How long a program may take to start working on a busy machine, in ms. */
export const STARTUP = 15_000

export interface Ended {
  readonly code: number | null
  readonly output: string
  readonly errors: string
}

export interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  /** Returns what the program has printed so far. */
  output(): string
  errors(): string
}

/**
 * Starts `baton`, and passes to `over` a function that kills the program. The default of `over` is `onTestFinished`, so
 * by default the program is killed after the test.
 */
export function start(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  over: (end: () => void) => void = onTestFinished,
): Running {
  const child = spawn(process.execPath, [program, ...args], {
    env: { ...process.env, REDIS_URL: redisUrl(), NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const printed = printedBy(child)
  const ended = new Promise<Ended>(resolve => child.once('close', code => resolve({ code, ...printed })))
  over(() => {
    child.kill('SIGKILL')
  })
  return { child, ended, output: () => printed.output, errors: () => printed.errors }
}

export function baton(...args: readonly string[]): Promise<Ended> {
  return start(args).ended
}

/** A command that prints "runs", and then runs until a signal ends it. */
export const stays: readonly string[] = ['sh', '-c', 'echo runs; exec sleep 60']

/** Waits until the program has printed something. If its command is `stays`, that command is then running. */
export async function begun(running: Running): Promise<Running> {
  await eventually(() => running.output() !== '', STARTUP)
  return running
}

/** Sends SIGTERM to the program, and expects the exit code that stands for SIGTERM. */
export async function end(running: Running): Promise<void> {
  running.child.kill('SIGTERM')
  expect((await running.ended).code).toBe(143)
}

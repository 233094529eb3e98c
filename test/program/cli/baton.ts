/** Runs the built program in a process of its own, as a user would. */
import { type ChildProcess, spawn } from 'node:child_process'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
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

interface Silent {
  readonly port: number
  /** The time of the first connection that stays unanswered, on the clock of `performance`. */
  readonly since: number | undefined
}

/**
 * Starts a server that accepts connections. It forwards the first `passed` connections to the tests' server, and never
 * answers the others.
 */
export async function silent(passed = 0): Promise<Silent> {
  let since: number | undefined
  let left = passed
  const sockets = new Set<Socket>()
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
  }
  const server = createServer(socket => {
    keep(socket)
    if (left-- > 0) {
      const upstream = connect(Number(new URL(redisUrl()).port), '127.0.0.1')
      keep(upstream)
      socket.pipe(upstream).pipe(socket)
    } else since ??= performance.now()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    port: (server.address() as AddressInfo).port,
    get since() {
      return since
    },
  }
}

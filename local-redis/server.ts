/**
 * The life of a server, the same for every driver.
 *
 * A driver (child process or container) only launches a server on a port, and ends it. Everything else is here:
 * choosing the port, choosing again if another program took the port in the meantime, deciding when a server is ready,
 * and the calls that kill and restart it.
 *
 *   start ──> ready ──kill──> dead ──restart──> ready ──stop──> over
 *
 * Each restart is a new launch. A restarted server is empty. It has its old data only if the caller gave it a folder,
 * and arguments that make it save data there.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from './error-message.ts'
import { freePort } from './port.ts'
import { probe } from './probe.ts'

/** A source from which any number of servers can be started. */
export interface ServerSource {
  readonly kind: 'path' | 'container' | 'package'
  /** A description for people, e.g. "redis-server 7.0.15 from the PATH (/usr/bin/redis-server)". */
  readonly description: string
  start(options?: StartOptions): Promise<RunningServer>
}

export interface StartOptions {
  /** Extra redis-server command line arguments, e.g. ['--maxmemory', '1mb']. */
  readonly args?: readonly string[]
  /** The port to listen on. Default: a free loopback port. */
  readonly port?: number
  /** The server's working folder, which is kept. Default: a temporary folder, which is removed. */
  readonly dir?: string
  /** The caller's configuration file, for servers that need one: a sentinel stores its state in it. */
  readonly config?: string
}

export interface RunningServer {
  readonly url: string
  readonly port: number
  /** The server process, if it is a process of this machine. Changes with each restart. */
  readonly pid: number | undefined
  /** Ends the server and removes its files. Further calls do nothing. */
  stop(): Promise<void>
  /** Ends the server as a crash would. The port is kept for a restart. */
  kill(): Promise<void>
  /**
   * Ends the server if it still runs, and starts an empty server on the same port. The arguments are `args`, or those
   * of `start` if `args` is absent.
   */
  restart(options?: { args?: readonly string[] }): Promise<void>
}

/** One launched server, from its launch to its end. */
export interface Life {
  readonly pid: number | undefined
  running(): Promise<boolean>
  /** Returns the last lines of the server's log, for an error. */
  logTail(): Promise<string>
  /** Ends the server and removes its files. If SIGTERM is not obeyed in time, sends SIGKILL. Idempotent. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
}

export interface LaunchOptions {
  readonly args: readonly string[]
  readonly dir: string | undefined
  readonly config: string | undefined
}

export type Launch = (port: number, options: LaunchOptions) => Promise<Life>

/** With these arguments, a server writes nothing to disk. The caller's own arguments come later and override them. */
export const emptyAndForgetful = ['--save', '', '--appendonly', 'no'] as const

const launchAttempts = 5
const readyWithinMs = 15_000
const reservedPort = 6379
const strangerAnswered = 'another server answered'
/**
 * Matches the messages that say that the port is taken: those of a server, of a container engine and of `untilReady`.
 */
const portTaken = new RegExp(`address already in use|port is already allocated|${strangerAnswered}`, 'i')

export async function startServer(launch: Launch, options: StartOptions = {}): Promise<RunningServer> {
  const { args = [], port, dir, config } = options
  const { life, port: takenPort } = await launchUntilReady(launch, port, { args, dir, config })
  return new LaunchedServer(launch, takenPort, { args, dir, config }, life)
}

class LaunchedServer implements RunningServer {
  readonly url: string
  #life: Life
  #over = false
  /**
   * The calls of `stop`, `kill` and `restart` run one after another. So a stop during a restart does not miss the
   * server that is being launched.
   */
  #turn: Promise<void> = Promise.resolve()

  constructor(
    private readonly launch: Launch,
    readonly port: number,
    private readonly options: LaunchOptions,
    life: Life,
  ) {
    this.url = `redis://127.0.0.1:${port}`
    this.#life = life
  }

  get pid(): number | undefined {
    return this.#life.pid
  }

  stop(): Promise<void> {
    return this.#inTurn(async () => {
      this.#over = true
      await this.#life.end('SIGTERM')
    })
  }

  kill(): Promise<void> {
    return this.#inTurn(() => this.#life.end('SIGKILL'))
  }

  restart({ args = this.options.args }: { args?: readonly string[] } = {}): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#over) throw new Error('this server was stopped; start another one')
      await this.#life.end('SIGTERM')
      const { life } = await launchUntilReady(this.launch, this.port, { ...this.options, args })
      this.#life = life
    })
  }

  #inTurn(step: () => Promise<void>): Promise<void> {
    const result = this.#turn.then(step)
    this.#turn = result.catch(() => {})
    return result
  }
}

/**
 * Launches the server on a port, and waits until it is ready. If another program has taken the port since it was
 * chosen, the launch is repeated after a pause: on the same port if the caller named it, otherwise on another port.
 */
async function launchUntilReady(
  launch: Launch,
  wantedPort: number | undefined,
  options: LaunchOptions,
): Promise<{ life: Life; port: number }> {
  if (wantedPort === reservedPort)
    throw new Error(
      `port ${reservedPort} is reserved for a Redis that may already run on this machine; choose a different port`,
    )
  if (options.args.includes('--port')) throw new Error('give the port as the option `port`, not in `args`')

  for (let attempt = 1; ; attempt++) {
    const port = wantedPort ?? (await freePort())
    try {
      return { life: await launchOnce(launch, port, options), port }
    } catch (error) {
      if (attempt === launchAttempts || !portTaken.test(messageOf(error))) throw error
      await sleep(100 * attempt)
    }
  }
}

async function launchOnce(launch: Launch, port: number, options: LaunchOptions): Promise<Life> {
  const life = await launch(port, options)
  const failure = await untilReady(life, port).catch(messageOf)
  if (failure === undefined) return life
  const log = await life.logTail().catch(messageOf)
  await life.end('SIGKILL')
  throw new Error(`the Redis server did not start on port ${port}: ${failure}\n${log}`.trimEnd())
}

/** Returns undefined once the server answers, or the reason why the server did not start. */
async function untilReady(life: Life, port: number): Promise<string | undefined> {
  const deadline = Date.now() + readyWithinMs
  while (Date.now() < deadline) {
    const answer = await probe(port)
    // Another server may have taken the port first. Then that server has answered, and the server of this launch is
    // about to exit.
    if (answer?.pid !== undefined && life.pid !== undefined && answer.pid !== life.pid) return strangerAnswered
    // A server that requires a password does not report its process id. So the answer may come from another server that
    // has taken the port. In that case the server of this launch exits, so wait a moment, and then check that it runs.
    if (answer && answer.pid === undefined) await sleep(100)
    if (!(await life.running())) return 'the server exited'
    if (answer) return undefined
    await sleep(15)
  }
  return `the server gave no answer within ${readyWithinMs / 1000} s`
}

/**
 * A server as a child process that cannot outlive its parent.
 *
 * Handlers for exit and signals could end the server in most cases. But no handler runs when a process is killed with
 * SIGKILL or when a worker thread is torn down, and each signal handler changes how its process reacts to the signal.
 * So this module has no such handlers. Instead, the child holds one end of a pipe, the lifeline. The kernel closes the
 * other end however the parent ends:
 *
 *  this process ──lifeline──> sh: waits for a line ──(closed without a line)──> kills the server, removes the folder
 *       │                      ▲ forked by
 *       └──────spawns────────> sh ──exec──> redis-server     (same process id before and after exec)
 *
 * The watching shell is forked before the server exists, so the server is watched from its first moment. When the
 * server has ended, the parent writes a line. The watcher then exits without killing, because the process id may by
 * then belong to another process.
 *
 * The server runs in a session of its own. Otherwise Ctrl-C in a terminal would also end the server, before the program
 * could finish its work with it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { emptyAndForgetful, type Launch, type Life } from './server.ts'

const underWatch = [
  '( read -r line <&3 || { kill -9 $$; rm -rf "$0"; } ) >/dev/null 2>&1 &', // $$ is the server, $0 its folder
  'exec "$@" 3<&-',
].join('\n')

const obeysWithinMs = 3_000
const tailLines = 20

/** Launches `binary` on loopback; `env` is added to this process's environment. */
export function launchProcess(binary: string, env: NodeJS.ProcessEnv = {}): Launch {
  return async (port, { args, dir, config }) => {
    const temporary = await mkdtemp(join(tmpdir(), 'baton-redis-'))
    const logFile = join(temporary, 'server.log')
    const own = ['--bind', '127.0.0.1', '--port', String(port), '--dir', dir ?? temporary, ...emptyAndForgetful]
    try {
      // The configuration file comes first, so that all arguments override it.
      const words = config === undefined ? [binary] : [binary, config]
      const child = spawnLogged(logFile, [temporary, ...words, ...own, ...args], env)
      if (child.pid === undefined) throw (await once(child, 'error'))[0]
      return new ProcessLife(child, temporary, logFile)
    } catch (error) {
      await rm(temporary, { recursive: true, force: true })
      throw error
    }
  }
}

/**
 * Starts the child, and redirects its output to the log file. A server prints complaints about its arguments before it
 * applies any argument, so with --logfile the log would lack these complaints. This function is synchronous, so that
 * the child emits no event before its listeners are attached.
 */
function spawnLogged(logFile: string, words: string[], env: NodeJS.ProcessEnv): ChildProcess {
  const log = openSync(logFile, 'a')
  try {
    return spawn('/bin/sh', ['-c', underWatch, ...words], {
      stdio: ['ignore', log, log, 'pipe'],
      detached: true,
      env: { ...process.env, ...env },
    })
  } finally {
    closeSync(log)
  }
}

class ProcessLife implements Life {
  readonly pid: number | undefined
  readonly #lifeline: Socket
  readonly #ended: Promise<unknown>

  constructor(
    private readonly child: ChildProcess,
    private readonly folder: string,
    private readonly logFile: string,
  ) {
    this.pid = child.pid
    const lifeline = child.stdio[3] as Socket
    this.#lifeline = lifeline
    const unwatched = new Promise(resolve => lifeline.once('close', resolve))
    // The pipe has an error if another program kills the shell that watches the server. The close event follows.
    lifeline.on('error', () => {})
    lifeline.resume() // only a stream that is being read emits its close event
    const exited = new Promise(resolve => child.once('exit', resolve)).then(() => lifeline.end('over\n'))
    this.#ended = Promise.all([exited, unwatched])

    // A running server does not keep this process alive.
    child.unref()
    lifeline.unref()
  }

  async running(): Promise<boolean> {
    return this.child.exitCode === null && this.child.signalCode === null
  }

  async logTail(): Promise<string> {
    const log = await readFile(this.logFile, 'utf8')
    return log.trimEnd().split('\n').slice(-tailLines).join('\n')
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    this.child.ref()
    this.#lifeline.ref()
    this.child.kill(signal)
    const force = setTimeout(() => this.child.kill('SIGKILL'), obeysWithinMs)
    await this.#ended
    clearTimeout(force)
    await rm(this.folder, { recursive: true, force: true })
  }
}

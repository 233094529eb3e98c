/**
 * Finds a container engine that answers. If there is none, starts an engine as root, which ends together with this
 * process.
 *
 * The engine's programs come from the PATH, or from the distribution's packages. The packages are unpacked into the
 * cache, and nothing is installed. The engine works in a temporary folder with a socket of its own. It changes neither
 * the firewall nor routing, because its proxy publishes ports on loopback.
 *
 *   this process ──pipe──> watching sh       when the pipe closes: ends the engine with its containers,
 *        │                      ▲ forked by   then removes the folder
 *        └──────spawns────────> sh ──exec──> dockerd      (same process id before and after exec)
 *
 * The pipe closes when this process ends, however it ends.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, existsSync, openSync } from 'node:fs'
import { mkdtemp, readFile } from 'node:fs/promises'
import { request } from 'node:http'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import which from 'which'
import { run } from '../../local-redis/command.ts'
import { engineAnswers } from '../../local-redis/container.ts'
import { libraryPath, unpackPackages } from '../../local-redis/packages.ts'

export interface Engine {
  readonly description: string
  /** The environment that a process needs to reach the engine. */
  readonly env: NodeJS.ProcessEnv
  /** Ends the engine, if it was started here. */
  stop(): Promise<void>
}

/**
 * Paths that an engine creates outside its folders, with the commands that remove them. The first is a network
 * interface. The second is a folder with a cryptographic key, which is never used.
 */
const engineTraces = new Map<string, readonly [string, ...string[]]>([
  ['/sys/class/net/docker0', ['ip', 'link', 'delete', 'docker0']],
  ['/etc/docker', ['rm', '-r', '/etc/docker']],
])

export async function findEngine(): Promise<Engine> {
  if (await engineAnswers()) {
    return { description: 'a container engine that was there', env: {}, stop: async () => {} }
  }
  const help = 'No container engine answers. Start one (Docker, Podman), or run this as root on Debian'
  if (process.platform !== 'linux' || process.getuid?.() !== 0) throw new Error(help)
  const programs = await findPrograms()
  if ('unavailable' in programs) throw new Error(`${help}\n${programs.unavailable}`)
  return start(programs)
}

interface Programs {
  readonly dockerd: string
  readonly version: string
  readonly env: NodeJS.ProcessEnv
}

async function findPrograms(): Promise<Programs | { unavailable: string }> {
  const { PATH = '' } = process.env
  const installed = await programsIn([...PATH.split(delimiter), '/usr/sbin', '/sbin'], {})
  if (installed) return installed
  const wanted = {
    name: 'engine',
    choices: [['docker.io', 'containerd', 'runc']],
    find: async (tree: string) =>
      programsIn([join(tree, 'usr', 'sbin'), join(tree, 'usr', 'bin'), ...PATH.split(delimiter)], {
        LD_LIBRARY_PATH: await libraryPath(tree),
      }),
  }
  const unpacked = await unpackPackages(wanted, process.env)
  return 'found' in unpacked ? unpacked.found : unpacked
}

/** Finds the engine and the programs that the engine starts. Returns undefined if one is missing or does not run. */
async function programsIn(folders: readonly string[], libraries: NodeJS.ProcessEnv): Promise<Programs | undefined> {
  const env = { ...libraries, PATH: folders.join(delimiter) }
  let version = ''
  for (const name of ['docker-proxy', 'containerd-shim-runc-v2', 'containerd', 'runc', 'dockerd']) {
    const program = await which(name, { path: env.PATH, nothrow: true })
    if (program === null) return undefined
    // These two programs have no option that prints a version.
    if (name === 'docker-proxy' || name === 'containerd-shim-runc-v2') continue
    const line = await run(program, ['--version'], { timeoutMs: 10_000, env }).catch(() => undefined)
    if (line === undefined) return undefined
    version = line.trim().split('\n')[0] ?? ''
  }
  return { dockerd: await which('dockerd', { path: env.PATH }), version, env }
}

const readyWithinMs = 60_000
const obeysWithinMs = 30_000
const tailLines = 12

/**
 * The shell script that becomes the engine, and its watcher. $0 is the folder, and $$ the engine's process id. The
 * watcher waits for the engine's end, but for no more than 30 s: if no process collects the exit status of the ended
 * engine, the engine seems to be alive for ever.
 */
const underWatch = [
  'ended() { for _ in $(seq 300); do kill -0 $$ || return; sleep 0.1; done; }',
  '( read -r line <&3 || { kill -TERM $$; ended; }; rm -rf "$0" ) >/dev/null 2>&1 &',
  'exec "$@" 3<&-',
].join('\n')

async function start({ dockerd, version, env }: Programs): Promise<Engine> {
  const folder = await mkdtemp(join(tmpdir(), 'baton-engine-'))
  const socket = join(folder, 'engine.sock')
  const logFile = join(folder, 'log')
  const traces = [...engineTraces].filter(([trace]) => !existsSync(trace))
  const words = [
    dockerd,
    ...['--host', `unix://${socket}`, '--pidfile', join(folder, 'pid')],
    ...['--data-root', join(folder, 'data'), '--exec-root', join(folder, 'exec')],
    ...['--iptables=false', '--ip-forward=false', '--ip-masq=false'],
  ]
  const log = openSync(logFile, 'a')
  const child = spawn('/bin/sh', ['-c', underWatch, folder, ...words], {
    stdio: ['ignore', log, log, 'pipe'],
    // Ctrl-C must not end the engine before this process has removed the engine's containers.
    detached: true,
    env: { ...process.env, ...env },
  })
  closeSync(log)
  const life = new EngineLife(child)
  const stop = async () => {
    await life.end()
    for (const [, [file, ...args]] of traces) await run(file, args, { timeoutMs: 5_000 }).catch(() => {})
  }

  for (const deadline = Date.now() + readyWithinMs; !(await answers(socket)); ) {
    if (child.exitCode === null && child.signalCode === null && Date.now() < deadline) {
      await sleep(100)
      continue
    }
    const told = (await readFile(logFile, 'utf8').catch(() => '')).trimEnd().split('\n').slice(-tailLines).join('\n')
    await stop()
    throw new Error(`the container engine ${version} (${dockerd}) did not start\n${told}`)
  }
  return { description: `${version}, started for this (${dockerd})`, env: { DOCKER_HOST: `unix://${socket}` }, stop }
}

class EngineLife {
  readonly #child: ChildProcess
  readonly #lifeline: Socket
  readonly #ended: Promise<unknown>

  constructor(child: ChildProcess) {
    this.#child = child
    this.#lifeline = child.stdio[3] as Socket
    const unwatched = new Promise(resolve => this.#lifeline.once('close', resolve))
    // An error needs no handling, because the close event follows.
    this.#lifeline.on('error', () => {})
    this.#lifeline.resume()
    // After the engine's exit, its process id may belong to another process. The line `over` tells the watcher not to
    // kill that process.
    const exited = new Promise(resolve => child.once('exit', resolve)).then(() => this.#lifeline.end('over\n'))
    this.#ended = Promise.all([exited, unwatched])
    child.unref()
    this.#lifeline.unref()
  }

  async end(): Promise<void> {
    this.#child.ref()
    this.#lifeline.ref()
    this.#child.kill('SIGTERM')
    const force = setTimeout(() => this.#child.kill('SIGKILL'), obeysWithinMs)
    await this.#ended
    clearTimeout(force)
  }
}

function answers(socketPath: string): Promise<boolean> {
  return new Promise(resolve => {
    const asked = request({ socketPath, path: '/_ping', timeout: 1_000 }, response => {
      response.resume()
      resolve(response.statusCode === 200)
    })
    asked.on('timeout', () => asked.destroy())
    asked.on('error', () => resolve(false))
    asked.end()
  })
}

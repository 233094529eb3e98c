/**
 * Servers in containers, through testcontainers. That package is a dev dependency of the project. It is absent if only
 * the published package is installed, and then this module cannot start servers.
 *
 * process.ts ends its servers together with this process, by a pipe. That works only for child processes, and a
 * container is not one. If this process ends without stopping its containers, the reaper of testcontainers removes
 * them. The reaper watches a connection that closes when this process ends.
 */
import { createRequire } from 'node:module'
import type { ContainerRuntimeClient, StartedTestContainer, WaitStrategy } from 'testcontainers'
import type { Finding, SourceOption } from './choose.ts'
import { run } from './command.ts'
import { messageOf } from './error-message.ts'
import { emptyAndForgetful, type Launch, type Life, startServer } from './server.ts'

type Testcontainers = typeof import('testcontainers')

/**
 * The time limit for an answer of the container engine. On a busy machine, loading testcontainers takes most of this
 * time. If no engine runs, the request fails at once.
 */
const engineAnswersWithinMs = 5_000
const obeysWithinMs = 3_000
const tailLines = 20

/**
 * Returns the option to run servers in containers. Two environment variables affect it. `BATON_REDIS_ARGS` contains
 * arguments for every server, separated by spaces. `BATON_CONTAINER_LABEL` is a label for every container, in the form
 * key=value. If the reaper of testcontainers cannot run, the user finds leftover containers by this label.
 */
export function inContainer(env: NodeJS.ProcessEnv = process.env): SourceOption {
  return { name: 'container', find: () => find(env) }
}

async function find(env: NodeJS.ProcessEnv): Promise<Finding> {
  if (!installedTestcontainers()) return { unavailable: 'the package testcontainers is not installed' }
  // If the user names an image, only containers may be used, so this function does not test whether they work. If they
  // do not work, the start of the first server fails and says why. If the user names no image, servers may come from
  // elsewhere. So this function tests whether containers work.
  const { BATON_REDIS_IMAGE: named } = env
  if (!named && !(await engineAnswers()))
    return { unavailable: 'no container engine (such as Docker or Podman) is running' }
  const testcontainers = await import('testcontainers')
  const engine = await testcontainers.getContainerRuntimeClient()
  const image = named || 'redis:7'
  const args = (env['BATON_REDIS_ARGS'] ?? '').split(' ').filter(Boolean)
  const [label, value = ''] = (env['BATON_CONTAINER_LABEL'] ?? '').split('=')
  const launch = launchContainer(testcontainers, engine, { image, args, labels: label ? { [label]: value } : {} })

  // An engine that answers may still be unable to pull the image, to run the reaper, or to publish a port that this
  // process can reach (e.g. if the engine is on another machine). A test server that starts, and is stopped at once,
  // proves that all of this works.
  if (!named) {
    try {
      await (await startServer(launch)).stop()
    } catch (error) {
      return { unavailable: `${image} does not run: ${messageOf(error)}` }
    }
  }
  const { serverVersion } = engine.info.containerRuntime as { serverVersion?: string | number }
  const description = `${image} in a container${serverVersion ? ` (engine ${serverVersion})` : ''}`
  return { source: { kind: 'container', description, start: options => startServer(launch, options) } }
}

function installedTestcontainers(): string | undefined {
  try {
    return createRequire(import.meta.url).resolve('testcontainers')
  } catch {
    return undefined
  }
}

/**
 * Returns whether a container engine answers. Asks it from a separate process: if an engine accepts connections but
 * hangs, the request cannot be cancelled, and would keep this process from ending.
 */
export async function engineAnswers(): Promise<boolean> {
  const testcontainersFile = installedTestcontainers()
  if (!testcontainersFile) return false
  const ask = 'require(process.argv[1]).getContainerRuntimeClient().then(() => process.exit(0), () => process.exit(1))'
  return run(process.execPath, ['-e', ask, testcontainersFile], { timeoutMs: engineAnswersWithinMs }).then(
    () => true,
    () => false,
  )
}

interface Kind {
  readonly image: string
  readonly args: readonly string[]
  readonly labels: Readonly<Record<string, string>>
}

function launchContainer(testcontainers: Testcontainers, engine: ContainerRuntimeClient, kind: Kind): Launch {
  class LoopbackContainer extends testcontainers.GenericContainer {
    createdId: string | undefined

    /** Limits the published ports to loopback. testcontainers publishes them on every address of the machine. */
    protected override async beforeContainerCreated(): Promise<void> {
      for (const bindings of Object.values(this.hostConfig.PortBindings as Record<string, { HostIp?: string }[]>)) {
        for (const binding of bindings) binding.HostIp = '127.0.0.1'
      }
    }

    protected override async containerCreated(id: string): Promise<void> {
      this.createdId = id
    }
  }

  return async (port, { args, dir, config }) => {
    if (dir !== undefined || config !== undefined)
      throw new Error(
        'a server in a container cannot read files of this machine, so leave out the options `dir` and `config`',
      )
    // The port is the same inside and outside the container. The arguments name no program, because the image's entry
    // point puts redis-server or valkey-server before arguments that start with a dash.
    const network = ['--port', String(port), '--bind', '0.0.0.0', '--protected-mode', 'no']
    const container = new LoopbackContainer(kind.image)
      .withExposedPorts({ container: port, host: port })
      .withLabels(kind.labels)
      .withCommand([...network, ...emptyAndForgetful, ...kind.args, ...args])
      .withWaitStrategy(noWait)
    try {
      return new ContainerLife(engine, await container.start())
    } catch (error) {
      // The container was created but not started, e.g. because the port was taken. It has to be removed here, because
      // the caller does not learn its id.
      if (container.createdId) await engine.container.getById(container.createdId).remove({ force: true })
      throw error
    }
  }
}

/**
 * testcontainers does not have to wait. For child processes and containers alike, server.ts decides when a server is
 * ready.
 */
const noWait: WaitStrategy = {
  waitUntilReady: async () => {},
  withStartupTimeout: () => noWait,
  isStartupTimeoutSet: () => false,
  getStartupTimeout: () => 0,
}

class ContainerLife implements Life {
  readonly pid = undefined
  #ended: Promise<void> | undefined

  constructor(
    private readonly engine: ContainerRuntimeClient,
    private readonly container: StartedTestContainer,
  ) {}

  async running(): Promise<boolean> {
    const { State } = await this.engine.container.getById(this.container.getId()).inspect()
    return State.Running
  }

  async logTail(): Promise<string> {
    const container = this.engine.container.getById(this.container.getId())
    const log = await container.logs({ stdout: true, stderr: true, tail: tailLines })
    return plainText(log)
  }

  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const timeout = signal === 'SIGKILL' ? 0 : obeysWithinMs
    this.#ended ??= this.container.stop({ remove: true, timeout }).then(() => {})
    return this.#ended
  }
}

/**
 * Extracts the text from output of the engine, which consists of frames. Each frame begins with the number of the
 * stream (one byte), three zero bytes and the length of the text (four bytes).
 */
function plainText(frames: Buffer): string {
  let text = ''
  for (let at = 0; at + 8 <= frames.length; ) {
    const end = at + 8 + frames.readUInt32BE(at + 4)
    text += frames.toString('utf8', at + 8, end)
    at = end
  }
  return text.trimEnd()
}

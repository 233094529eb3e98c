/**
 * Starts the proxy process that simulates a network between clients and servers. The proxy adds half of the round trip
 * to each direction.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { loader, programFile } from '../../local-redis/package-root.ts'

export interface DelayProxy {
  /** Each server's URL through the proxy. */
  readonly urls: readonly string[]
  stop(): void
}

const program = programFile('benchmarks/delay/main')
const startWithin = 10_000

/** Starts a proxy in front of these servers. `rtt` is the added round trip in ms. */
export async function startDelayProxy(serverUrls: readonly string[], rtt: number): Promise<DelayProxy> {
  const urls = serverUrls.map(url => new URL(url))
  const servers = urls.map(({ hostname, port }) => `${hostname}:${port || '6379'}`)
  const child: ChildProcess = fork(program, [String(rtt / 2), ...servers], {
    execArgv: [...loader],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const [ports] = (await once(child, 'message', { signal: AbortSignal.timeout(startWithin) })) as [number[]]
  for (const [i, url] of urls.entries()) {
    url.hostname = '127.0.0.1'
    url.port = String(ports[i])
  }
  return { urls: urls.map(({ href }) => href), stop: () => void child.kill('SIGKILL') }
}

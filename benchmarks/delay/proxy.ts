/** The network between clients and servers, as a process of its own: each way takes half of the round trip longer. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { loader, programFile } from '../../local-redis/package-root.ts'

export interface DelayProxy {
  /** Of each server its URL, by way of the proxy. */
  readonly urls: readonly string[]
  stop(): void
}

const program = programFile('benchmarks/delay/main')
const startWithin = 10_000

/** `rtt` in ms, there and back. */
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

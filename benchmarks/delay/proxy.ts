/** The network between clients and server, as a process of its own: each way takes half of the round trip longer. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { loader, programFile } from '../../local-redis/package-root.ts'

export interface DelayProxy {
  /** The server's URL, by way of the proxy. */
  readonly url: string
  stop(): void
}

const program = programFile('benchmarks/delay/main')
const startWithin = 10_000

/** `rtt` in ms, there and back. */
export async function startDelayProxy(serverUrl: string, rtt: number): Promise<DelayProxy> {
  const url = new URL(serverUrl)
  const child: ChildProcess = fork(program, [url.hostname, url.port || '6379', String(rtt / 2)], {
    execArgv: [...loader],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const [port] = await once(child, 'message', { signal: AbortSignal.timeout(startWithin) })
  url.hostname = '127.0.0.1'
  url.port = String(port)
  return { url: url.href, stop: () => void child.kill('SIGKILL') }
}

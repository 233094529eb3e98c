/** What a run has around it: the server, the proxy where a delay is wanted, and the loops that keep the cores awake. */
import { findServerSource } from '../../local-redis/index.ts'
import { type DelayProxy, startDelayProxy } from '../delay/proxy.ts'
import type { Plan } from './plan.ts'
import { Server } from './server.ts'
import { type WarmCores, warmCores } from './warm-cores.ts'

export interface Surroundings {
  readonly server: Server
  readonly proxy: DelayProxy | undefined
  readonly warm: WarmCores | undefined
  stop(): Promise<void>
}

/** `announce` is told which server is used, without its password. When one part fails, the others are stopped again. */
export async function prepare(plan: Plan, announce: (line: string) => void): Promise<Surroundings> {
  const ends: (() => unknown)[] = []
  const stop = async () => {
    for (const end of ends.reverse()) await end()
  }
  try {
    let { url } = plan
    if (url === undefined) {
      const source = await findServerSource()
      const started = await source.start({ args: ['--maxclients', '20000'] })
      ends.push(() => started.stop())
      url = started.url
      announce(`Redis: ${source.description}, started for this`)
    } else {
      announce(`Redis: ${new URL(url).host}, as it is`)
    }
    const server = await Server.reach(url, plan.url === undefined)
    ends.push(() => server.close())
    const proxy = plan.rtt > 0 ? await startDelayProxy(url, plan.rtt) : undefined
    ends.push(() => proxy?.stop())
    const warm = plan.warmCores ? await warmCores() : undefined
    ends.push(() => warm?.stop())
    return { server, proxy, warm, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

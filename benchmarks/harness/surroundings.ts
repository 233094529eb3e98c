/** Starts what a run needs: servers, a proxy if a delay is wanted, and the loops that keep the cores awake. */
import { findServerSource } from '../../local-redis/index.ts'
import { type DelayProxy, startDelayProxy } from '../delay/proxy.ts'
import type { Plan } from './plan.ts'
import { Server } from './server.ts'
import { type WarmCores, warmCores } from './warm-cores.ts'

export interface Surroundings {
  /** As many servers as the largest scenario needs, or only the user's server if a URL is given. */
  readonly servers: readonly [Server, ...Server[]]
  /** For each server, the URL for workers. With a proxy, this is the proxy's URL. */
  readonly urls: readonly string[]
  readonly proxy: DelayProxy | undefined
  readonly warm: WarmCores | undefined
  stop(): Promise<void>
}

/**
 * Starts everything that the run needs. `announce` receives a line that says which server is used. The line never
 * contains a password. If one part fails to start, the parts that have already started are stopped.
 */
export async function prepare(plan: Plan, announce: (line: string) => void): Promise<Surroundings> {
  const ends: (() => unknown)[] = []
  const stop = async () => {
    for (const end of ends.reverse()) await end()
  }
  try {
    const servers: Server[] = []
    const reach = async (...args: Parameters<typeof Server.reach>) => {
      const server = await Server.reach(...args)
      ends.push(() => server.close())
      servers.push(server)
    }
    if (plan.url === undefined) {
      const source = await findServerSource()
      const count = Math.max(1, ...plan.scenarios.map(({ servers = 1 }) => servers))
      for (let i = 0; i < count; i++) {
        const started = await source.start({ args: ['--maxclients', '20000'] })
        ends.push(() => started.stop())
        await reach(started.url, true, started.pid)
      }
      announce(`Redis: ${source.description}, ${count === 1 ? 'started' : `${count} of them started`} for this run`)
    } else {
      announce(`Redis: ${new URL(plan.url).host}, as it is`)
      await reach(plan.url, false)
    }
    const own = servers.map(({ url }) => url)
    const proxy = plan.rtt > 0 ? await startDelayProxy(own, plan.rtt) : undefined
    ends.push(() => proxy?.stop())
    const warm = plan.warmCores ? await warmCores() : undefined
    ends.push(() => warm?.stop())
    return { servers: servers as [Server, ...Server[]], urls: proxy?.urls ?? own, proxy, warm, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

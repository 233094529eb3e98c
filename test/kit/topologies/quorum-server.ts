/** Starts a server for a quorum. The servers of a quorum do not know of each other. Each server has its own folder. */
import { mkdtemp, readdir, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findServerSource, type RunningServer } from '../../../local-redis/index.ts'

/**
 * With these arguments, a server keeps all its data in a restart. So clients rely on its grants as soon as it runs
 * again.
 */
export const persistsEveryWrite = ['--appendonly', 'yes', '--appendfsync', 'always'] as const

export interface QuorumServer extends RunningServer {
  /** Restarts the server without its data, even if the server persists its data. */
  restart(): Promise<void>
  /** Restarts the server with the data that it had written. The server must be a process of this machine. */
  resume(): Promise<void>
}

/** Starts a server. `under` wraps every launch of the server, for example to give it its own clock. */
export async function startQuorumServer(
  args: readonly string[] = persistsEveryWrite,
  under: <T>(launch: () => Promise<T>) => Promise<T> = launch => launch(),
): Promise<QuorumServer> {
  const source = await findServerSource()
  // A server in a container has a folder in the container. This folder is deleted with the container.
  const dir =
    source.kind === 'container' ? undefined : await mkdtemp(join(await realpath(tmpdir()), 'baton-quorum-server-'))
  const remove = async () => {
    if (dir !== undefined) await rm(dir, { recursive: true, force: true })
  }
  const forget = async () => {
    for (const name of dir === undefined ? [] : await readdir(dir)) {
      await rm(join(dir!, name), { recursive: true, force: true })
    }
  }
  let server: RunningServer
  try {
    server = await under(() => source.start(dir === undefined ? { args } : { args, dir }))
  } catch (error) {
    await remove()
    throw error
  }
  return {
    url: server.url,
    port: server.port,
    get pid() {
      return server.pid
    },
    kill: () => server.kill(),
    async restart() {
      await server.kill()
      await forget()
      await under(() => server.restart())
    },
    async resume() {
      if (dir === undefined) throw new Error('what a server in a container has written ends with it')
      await server.kill()
      await under(() => server.restart())
    },
    async stop() {
      // Kill the server instead of asking it to end: a frozen server would not react, and its last writes are not
      // needed.
      await server.kill()
      await server.stop()
      await remove()
    },
  }
}

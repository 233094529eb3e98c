/** One server of a quorum: it knows nothing of the others, and keeps a folder of its own where it persists. */
import { mkdtemp, readdir, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findServerSource, type RunningServer } from '../../../local-redis/index.ts'

/** A server that says so has forgotten nothing when it begins again, and counts for a quorum at once. */
export const persistsEveryWrite = ['--appendonly', 'yes', '--appendfsync', 'always'] as const

export interface QuorumServer extends RunningServer {
  /** Begins again without anything that it had, whatever it says about persistence. */
  restart(): Promise<void>
  /** Begins again with what it had written. Needs a server that is a process of this machine. */
  resume(): Promise<void>
}

/** `under`: what every launch of it happens under, as a clock of its own. */
export async function startQuorumServer(
  args: readonly string[] = persistsEveryWrite,
  under: <T>(launch: () => Promise<T>) => Promise<T> = launch => launch(),
): Promise<QuorumServer> {
  const source = await findServerSource()
  // A server in a container has a folder of its own, which ends with it.
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
      // Nobody needs what it would still write, and one that is frozen does not hear a request to end.
      await server.kill()
      await server.stop()
      await remove()
    },
  }
}

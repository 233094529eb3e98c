/**
 * A cluster and a sentinel setup for tests of programs, each with as few servers as possible. Both have passwords, with
 * or without TLS. The cluster has two masters; the sentinel setup has one master and one sentinel. Neither can fail
 * over.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { findServerSource, type RunningServer } from '../../../local-redis/index.ts'
import { eventually } from '../time.ts'
import { Authority } from './certificates.ts'
import { withSecondPort } from './second-port.ts'

const PATIENCE = 30_000
const SLOTS = 16_384

/** The passwords contain characters that must be encoded in a URL. */
export const passwords = { data: 's3cret/of?data#@%', sentinels: 's3cret&of=sentinels' } as const
export const masterName = 'the-locks.1'

export interface Guarded {
  /** The hosts and ports by which clients find Redis: those of the cluster nodes, or of the sentinel. */
  readonly hosts: readonly { readonly host: string; readonly port: number }[]
  /** The certificate to trust, as a file and as text. */
  readonly ca: { readonly file: string; readonly text: string }
  readonly servers: readonly RunningServer[]
  stop(): Promise<void>
}

export function guardedCluster({ tls }: { tls: boolean }): Promise<Guarded> {
  return guarded(async ({ start, admin, certified }) => {
    const own = ['--cluster-enabled', 'yes', '--requirepass', passwords.data, '--masterauth', passwords.data]
    const launch = () =>
      withSecondPort(async busPort => {
        const args = [...own, '--cluster-port', String(busPort), ...(tls ? ['--tls-cluster', 'yes'] : [])]
        return { ...(await certified(tls, extra => start({ args: [...args, ...extra] }))), busPort }
      })
    const nodes = [await launch(), await launch()]
    const [one, other] = nodes as [(typeof nodes)[0], (typeof nodes)[0]]
    const admins = nodes.map(({ server }) => admin(server, passwords.data))
    await admins[0]!.cluster('ADDSLOTSRANGE', 0, SLOTS / 2 - 1)
    await admins[1]!.cluster('ADDSLOTSRANGE', SLOTS / 2, SLOTS - 1)
    await admins[0]!.cluster('MEET', '127.0.0.1', other.port, other.busPort)
    for (const redis of admins) {
      await eventually(async () => {
        const said = String(await redis.cluster('INFO'))
        return /cluster_state:ok/.test(said) && /cluster_size:2/.test(said)
      }, PATIENCE)
    }
    return [one, other].map(({ port }) => ({ host: '127.0.0.1', port }))
  })
}

export function guardedSentinel({ tls }: { tls: boolean }): Promise<Guarded> {
  return guarded(async ({ start, folder, certified }) => {
    const master = await certified(tls, extra => start({ args: ['--requirepass', passwords.data, ...extra] }))
    const config = join(folder, 'sentinel.conf')
    const watch = `sentinel monitor ${masterName} 127.0.0.1 ${master.port} 1\nsentinel auth-pass ${masterName} "${passwords.data}"`
    const sentinel = await certified(tls, async extra => {
      await writeFile(config, `${watch}\nrequirepass "${passwords.sentinels}"\n`)
      const secure = tls ? ['--tls-replication', 'yes'] : []
      return start({ config, dir: folder, args: ['--sentinel', ...secure, ...extra] })
    })
    return [{ host: '127.0.0.1', port: sentinel.port }]
  })
}

interface Site {
  readonly folder: string
  start(options: { args: string[]; config?: string; dir?: string }): Promise<RunningServer>
  admin(server: RunningServer, password: string): Redis
  /** Starts a server. If `tls` is true, it has a TLS port. `port` in the result is the port that clients should use. */
  certified(
    tls: boolean,
    start: (extra: string[]) => Promise<RunningServer>,
  ): Promise<{ server: RunningServer; port: number }>
}

async function guarded(build: (site: Site) => Promise<Guarded['hosts']>): Promise<Guarded> {
  const folder = await mkdtemp(join(tmpdir(), 'baton-guarded-'))
  const source = await findServerSource()
  const authority = new Authority('the private authority of guarded servers')
  const { cert, key } = authority.credentials('server')
  const files = { ca: authority.cert, cert, key }
  const file = (name: string) => join(folder, name)
  const servers: RunningServer[] = []
  const admins: Redis[] = []
  const stop = async () => {
    for (const redis of admins) redis.disconnect()
    await Promise.all(servers.map(server => server.kill().then(() => server.stop())))
    await rm(folder, { recursive: true, force: true })
  }
  try {
    for (const [name, text] of Object.entries(files)) await writeFile(file(name), text, { mode: 0o600 })
    const secure = ['--tls-ca-cert-file', file('ca'), '--tls-cert-file', file('cert'), '--tls-key-file', file('key')]
    const hosts = await build({
      folder,
      async start(options) {
        const dir = options.dir ?? (await mkdtemp(join(folder, 'server-')))
        const server = await source.start({ ...options, dir })
        servers.push(server)
        return server
      },
      admin(server, password) {
        const redis = new Redis({ port: server.port, password, maxRetriesPerRequest: null })
        redis.on('error', () => {})
        admins.push(redis)
        return redis
      },
      async certified(tls, start) {
        if (!tls) {
          const server = await start([])
          return { server, port: server.port }
        }
        return withSecondPort(async port => {
          const args = ['--tls-port', String(port), '--tls-auth-clients', 'no', ...secure]
          return { server: await start(args), port }
        })
      },
    })
    return { hosts, ca: { file: file('ca'), text: authority.cert }, servers, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

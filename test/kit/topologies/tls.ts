/**
 * One server that requires TLS and a client certificate. The same private authority signs the certificates of the
 * server and of the clients. The server also has a second port without TLS, which the tests use to inspect it.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findServerSource } from '../../../local-redis/index.ts'
import { Authority } from './certificates.ts'
import { withSecondPort } from './second-port.ts'
import type { Topology } from './topology.ts'

export const tls: Topology = {
  name: 'tls',
  async start(args = []) {
    const authority = new Authority('the private authority of the tests')
    const [client, server] = [authority.credentials('client'), authority.credentials('server')]
    const folder = await mkdtemp(join(tmpdir(), 'baton-tls-'))
    const remove = () => rm(folder, { recursive: true, force: true })
    try {
      const files = { ca: authority.cert, cert: server.cert, key: server.key }
      for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o600 })
      const source = await findServerSource()
      const { port, running } = await withSecondPort(async port => {
        const own = [
          ['--tls-port', String(port)],
          ['--tls-ca-cert-file', join(folder, 'ca')],
          ['--tls-cert-file', join(folder, 'cert')],
          ['--tls-key-file', join(folder, 'key')],
          ['--tls-auth-clients', 'yes'],
        ].flat()
        return { port, running: await source.start({ args: [...own, ...args] }) }
      })
      return {
        client: { kind: 'server', options: { host: '127.0.0.1', port, tls: { ca: authority.cert, ...client } } },
        admin: { kind: 'url', url: running.url },
        data: [running],
        stop: () => running.stop().finally(remove),
      }
    } catch (error) {
      await remove()
      throw error
    }
  },
}

/** One server with a password. Its users may do what a lock client needs, and nothing else. */
import { randomBytes } from 'node:crypto'
import { findServerSource } from '../../../local-redis/index.ts'
import { mutex } from '../../../src/kinds/mutex/mutex.ts'
import { aclRule } from '../rights.ts'
import type { Topology, Way } from './topology.ts'

const minimal = aclRule([mutex])
const anyPrefix = minimal.map(rule => (/^[~&]/.test(rule) ? `${rule[0]}*` : rule))

const users = {
  client: minimal,
  otherPrefix: anyPrefix,
  // Tests send these three commands on an instance of ioredis before they pass the instance to a lock client.
  caller: [...anyPrefix, '+ping', '+client|id', '+client|setname'],
}

export const acl: Topology = {
  name: 'acl',
  async start(args = []) {
    const password = randomBytes(16).toString('hex')
    const rules = Object.entries(users).flatMap(([name, rules]) => ['--user', name, 'on', `>${password}`, ...rules])
    const server = await (await findServerSource()).start({ args: ['--requirepass', password, ...rules, ...args] })
    const as = (username: string): Way => ({
      kind: 'server',
      options: { host: '127.0.0.1', port: server.port, username, password },
    })
    return {
      client: as('client'),
      otherPrefix: as('otherPrefix'),
      caller: as('caller'),
      admin: as('default'),
      data: [server],
      stop: () => server.stop(),
    }
  },
}

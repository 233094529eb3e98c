/**
 * The kinds of locks that can exclude as a mutex does. A suite about waiting, leases, messages or faults runs for each
 * kind. Each kind supplies the functions that make its clients. A test takes these functions from its kind:
 *
 *   test.each(kinds)('… ($kind)', async ({ client, clientBehindProxy }) => …
 */
import { inject } from 'vitest'
import { type KindName, kindClients, kindNames } from './kind-clients.ts'
import { ways } from './parking.ts'
import { Peer } from './peer.ts'
import { clientBehindProxy } from './proxies.ts'
import { client } from './redis.ts'

/** Returns functions that make clients of one kind. Each function works like the imported function of the same name. */
const kindNamed = (kind: KindName) => ({
  kind,
  client: (...[options, redis]: Parameters<typeof client>) => client(options, redis, kindClients[kind]),
  clients: (count: number) => Array.from({ length: count }, () => client({}, undefined, kindClients[kind])),
  clientBehindProxy: (...[options, url]: Parameters<typeof clientBehindProxy>) =>
    clientBehindProxy(options, url, kindClients[kind]),
  peer: (...[options, url]: Parameters<typeof Peer.start>) => Peer.start(options, url, kind),
  /** Returns the name of the lock's first key in Redis. */
  nameOf: (key: string) => (kind === 'mutex' ? `lock:{${key}}` : `lock:%${kind}/{${key}}`),
})

export const kinds = kindNames.map(kindNamed)
/**
 * The kinds for which the contract tests run in this topology. Kinds differ only in their scripts, and only a cluster
 * runs scripts differently from a single server. In other topologies one kind is enough.
 */
export const kindsHere = ['standalone', 'cluster'].includes(inject('topology')) ? kinds : kinds.slice(0, 1)
export type Kinds = (typeof kinds)[number]
/** Each kind, once fair and once unfair. */
export const kindsAndWays = kinds.flatMap(each => ways.map(fair => ({ ...each, fair })))

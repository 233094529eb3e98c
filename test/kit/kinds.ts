/**
 * The kinds of locks that can be used as a mutex, with one holder at a time. Suites about waiting, leases, messages or
 * faults run for each kind. Each kind supplies the functions that make its clients:
 *
 *   test.each(kinds)('… ($kind)', async ({ client, clientBehindProxy }) => …
 */
import { inject } from 'vitest'
import { type KindName, kindClients, kindNames } from './kind-clients.ts'
import { ways } from './parking.ts'
import { Peer } from './peer.ts'
import { clientBehindProxy } from './proxies.ts'
import { client } from './redis.ts'

/** Returns functions that make clients which use this kind of lock. They wrap the imported functions. */
const kindNamed = (kind: KindName) => ({
  kind,
  client: (...[options, redis]: Parameters<typeof client>) => client(options, redis, kindClients[kind]),
  clients: (count: number) => Array.from({ length: count }, () => client({}, undefined, kindClients[kind])),
  clientBehindProxy: (...[options, url]: Parameters<typeof clientBehindProxy>) =>
    clientBehindProxy(options, url, kindClients[kind]),
  peer: (...[options, url]: Parameters<typeof Peer.start>) => Peer.start(options, url, kind),
  /** Returns the name of the lock's main key in Redis. The names of its other keys begin with this name. */
  nameOf: (key: string) => (kind === 'mutex' ? `lock:{${key}}` : `lock:%${kind}/{${key}}`),
})

export const kinds = kindNames.map(kindNamed)
/**
 * The kinds of locks for which the tests of test/contract run in this topology. Kinds differ only in their rules, and
 * only a cluster and a store in memory carry out the rules differently from a single server. In other topologies one kind is enough.
 */
export const kindsHere = ['standalone', 'cluster', 'memory'].includes(inject('topology')) ? kinds : kinds.slice(0, 1)
export type Kinds = (typeof kinds)[number]
export const kindsAndWays = kinds.flatMap(each => ways.map(fair => ({ ...each, fair })))

/**
 * The kinds of locks that exclude as a mutex does. A suite about waiting, leases, messages or faults runs for each of
 * them. A test takes from here the functions that make its clients:
 *
 *   test.each(kinds)('… ($kind)', async ({ client, clientBehindProxy }) => …
 */
import { inject } from 'vitest'
import { type KindName, kindClients, kindNames } from './kind-clients.ts'
import { ways } from './parking.ts'
import { Peer } from './peer.ts'
import { clientBehindProxy } from './proxies.ts'
import { client } from './redis.ts'

/** Makes clients of one kind. Each member corresponds to the function of the same name. */
const kindNamed = (kind: KindName) => ({
  kind,
  client: (...[options, redis]: Parameters<typeof client>) => client(options, redis, kindClients[kind]),
  clients: (count: number) => Array.from({ length: count }, () => client({}, undefined, kindClients[kind])),
  clientBehindProxy: (...[options, url]: Parameters<typeof clientBehindProxy>) =>
    clientBehindProxy(options, url, kindClients[kind]),
  peer: (...[options, url]: Parameters<typeof Peer.start>) => Peer.start(options, url, kind),
  /** The name of the lock's first key in Redis. */
  nameOf: (key: string) => (kind === 'mutex' ? `lock:{${key}}` : `lock:%${kind}/{${key}}`),
})

export const kinds = kindNames.map(kindNamed)
/**
 * For the contract, which runs over every topology. Kinds differ only in their scripts. A cluster runs scripts
 * differently from a single server; the other topologies differ only in the path to the server, which does not depend
 * on the script.
 */
export const kindsHere = ['standalone', 'cluster'].includes(inject('topology')) ? kinds : kinds.slice(0, 1)
export type Kinds = (typeof kinds)[number]
/** Each kind, fair and unfair. */
export const kindsAndWays = kinds.flatMap(each => ways.map(fair => ({ ...each, fair })))

/**
 * Kinds of locks that exclude as a mutex does: a suite whose subject is waiting, leases, messages or faults runs for each of them.
 * A test takes from here what makes its clients:
 *
 *   test.each(kinds)('… ($kind)', async ({ client, clientBehindProxy }) => …
 */
import { inject } from 'vitest'
import { type KindName, kindClients, kindNames } from './kind-clients.ts'
import { ways } from './parking.ts'
import { Peer } from './peer.ts'
import { clientBehindProxy } from './proxies.ts'
import { client } from './redis.ts'

/** Clients of one kind, made as by the functions of the same names. */
const kindNamed = (kind: KindName) => ({
  kind,
  client: (...[options, redis]: Parameters<typeof client>) => client(options, redis, kindClients[kind]),
  clients: (count: number) => Array.from({ length: count }, () => client({}, undefined, kindClients[kind])),
  clientBehindProxy: (...[options, url]: Parameters<typeof clientBehindProxy>) =>
    clientBehindProxy(options, url, kindClients[kind]),
  peer: (...[options, url]: Parameters<typeof Peer.start>) => Peer.start(options, url, kind),
  /** The name of its first key in Redis. */
  nameOf: (key: string) => (kind === 'mutex' ? `lock:{${key}}` : `lock:%${kind}/{${key}}`),
})

export const kinds = kindNames.map(kindNamed)
/**
 * For the contract, which is run over every topology. Kinds differ in their scripts: a cluster runs these differently, and what lies
 * between a client and its server does not see them.
 */
export const kindsHere = ['standalone', 'cluster'].includes(inject('topology')) ? kinds : kinds.slice(0, 1)
export type Kinds = (typeof kinds)[number]
/** Each of them, fair and unfair. */
export const kindsAndWays = kinds.flatMap(each => ways.map(fair => ({ ...each, fair })))

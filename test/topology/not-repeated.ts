/** Lists the contract files that do not run over every topology, where each runs, and why it need not run elsewhere. */
export interface Exception {
  readonly file: string
  /** The names of the topologies over which the file runs. */
  readonly on: readonly string[]
  readonly because: string
}

/** Topologies in which no server takes over from another. */
const single = ['standalone', 'tls', 'acl', 'quorum']
/** Topologies for a file whose results depend on scripts and messages. */
const byScripts = ['standalone', 'cluster']
/** Topologies for a file whose results also depend on how leases and waiters work. */
const byAnswers = [...byScripts, 'quorum']
const ofOneServer = ['standalone', 'cluster', 'sentinel', 'tls', 'acl']
const mutexesOnly =
  'It is about kinds of locks that a quorum does not have: it refuses them, which test/contract/quorum-errors.test.ts tests.'
const aboveConnections =
  'It is about what the client does with its options, its timers and answers, whichever connection these came over; it waits most of ' +
  'its time. How connections are made, lost and refused, all topologies have in other files, renewal and options on the way.'

const recordedOnce =
  'Callers of a client hand a lock of one server on among themselves. On a quorum each such step would have to be recorded by a ' +
  'majority first, so there is none.'
const severalServers =
  'It starts several servers of its own, and is about what they say together; so it is the same wherever it is run.'

export const notRepeated: readonly Exception[] = [
  { file: 'test/contract/client-options.test.ts', on: byAnswers, because: aboveConnections },
  { file: 'test/contract/putting-off.test.ts', on: byScripts, because: aboveConnections },
  { file: 'test/contract/renewal.test.ts', on: byAnswers, because: aboveConnections },
  {
    file: 'test/contract/kinds.test.ts',
    on: ['standalone', 'cluster', 'sentinel', 'tls'],
    because:
      'The users of the topology with rights have those that the mutex needs, and the kind made for this test calls other commands. ' +
      'A quorum has mutexes only.',
  },
  { file: 'test/contract/semaphore.test.ts', on: ofOneServer, because: mutexesOnly },
  { file: 'test/contract/read-write.test.ts', on: ofOneServer, because: mutexesOnly },
  { file: 'test/contract/other-kinds.test.ts', on: ofOneServer, because: mutexesOnly },
  { file: 'test/contract/local-handoff.test.ts', on: ofOneServer, because: recordedOnce },
  { file: 'test/contract/local-handoff-lease.test.ts', on: ofOneServer, because: recordedOnce },
  { file: 'test/contract/quorum.test.ts', on: ['quorum'], because: severalServers },
  { file: 'test/contract/quorum-away.test.ts', on: ['quorum'], because: severalServers },
  { file: 'test/contract/quorum-errors.test.ts', on: ['quorum'], because: severalServers },
  {
    file: 'test/contract/single-source.test.ts',
    on: ['standalone'],
    because:
      'It is about URLs and options that name one server without TLS and password. What else a client may be made from, ' +
      'all other files make their clients from, each over its own topology.',
  },
  {
    file: 'test/contract/restart.test.ts',
    on: single,
    because:
      'Its server crashes and begins again in the same place. Where there are replicas, one of them takes over instead, ' +
      'which has tests of its own in test/topology/faults.',
  },
  {
    file: 'test/contract/server-states.test.ts',
    on: single,
    because:
      'It makes its servers replicas of nobody, or keeps them from answering for seconds. The nodes of a cluster cannot be ' +
      'told so, and sentinels would act on it; what they do then has tests of its own in test/topology/faults.',
  },
]

/**
 * The tests that also run with ioredis 5, by topology. On one server, these are all contract tests and the tests of
 * node-redis. On the other topologies, these are the tests that depend on how a client connects, reconnects and
 * subscribes.
 */
export const withIoredis5: Readonly<Record<string, readonly string[]>> = {
  standalone: ['test/contract/*.test.ts', 'test/topology/node-redis.test.ts'],
  cluster: ['connection-source', 'fair-queue', 'lock', 'outage'].map(file => `test/contract/${file}.test.ts`),
  sentinel: ['connection-source', 'lock', 'outage'].map(file => `test/contract/${file}.test.ts`),
  tls: ['test/contract/connection-source.test.ts', 'test/contract/outage.test.ts'],
  acl: ['test/contract/connection-source.test.ts', 'test/contract/server-refusals.test.ts'],
  quorum: ['connection-source', 'outage', 'quorum'].map(file => `test/contract/${file}.test.ts`),
}

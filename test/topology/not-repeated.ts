/** Lists the contract files that do not run over every topology, where each runs, and why it need not run elsewhere. */
export interface Exception {
  readonly file: string
  /** The names of the topologies over which the file runs. */
  readonly on: readonly string[]
  readonly because: string
}

/** Topologies in which no server takes over from another. */
const single = ['standalone', 'tls', 'acl', 'quorum']
/** A single server and a cluster, because scripts and messages work differently on a cluster. */
const byScripts = ['standalone', 'cluster']
/** The same topologies and a quorum, because leases and waiters work differently on a quorum. */
const byAnswers = [...byScripts, 'quorum']
/** The topologies of which each has a backend of its own: one server, several servers, and none. */
const byBackend = ['standalone', 'quorum', 'memory']
/** The topologies that treat scripts in their own way. The users of `acl` may call only some commands. */
const byRights = [...byScripts, 'acl']
const withServers = ['standalone', 'cluster', 'sentinel', 'tls', 'acl', 'quorum']
const withKinds = [...byRights, 'memory']
const mutexesOnly =
  'It tests kinds of locks that a quorum does not have. test/contract/quorum-errors.test.ts tests that a quorum refuses them. A sentinel ' +
  'or TLS has no influence on their scripts.'
const aboveScripts =
  'It tests what the client does with the answers of its backend, and sends no script that other files do not send. Other files run over ' +
  'every topology, and test how connections are made, lost and refused.'
const aboveConnections =
  'It tests what the client does with its options, its timers and the answers of Redis. That does not depend on the connection. The ' +
  'file takes long, because it waits most of its time. Other files run over every topology, and test how connections are made, lost ' +
  'and refused.'

const recordedOnce =
  'It tests hand-offs within a client. A quorum has none, because a majority of its servers would first have to record each of them. A store ' +
  'in memory has none, because it is no further away than the next waiter.'
const severalServers = 'It starts a quorum of its own, so it would test the same thing over every other topology.'

export const notRepeated: readonly Exception[] = [
  ...['all', 'close-told', 'errors', 'lease'].map(name => ({
    file: `test/contract/${name}.test.ts`,
    on: [...byAnswers, 'memory'],
    because: aboveScripts,
  })),
  ...['bad-input', 'events', 'lock-object', 'locked', 'owners', 'reentry', 'signal', 'stats', 'using'].map(name => ({
    file: `test/contract/${name}.test.ts`,
    on: byBackend,
    because: aboveScripts,
  })),
  {
    file: 'test/contract/inspect-long.test.ts',
    on: byAnswers,
    because: 'A store in memory answers in one piece. A sentinel or TLS has no influence on what a script finds.',
  },
  ...['inspect', 'odd-keys'].map(name => ({
    file: `test/contract/${name}.test.ts`,
    on: [...byRights, 'quorum', 'memory'],
    because:
      'Its scripts read all that Redis has of a lock. A sentinel or TLS has no influence on what a script finds.',
  })),
  { file: 'test/contract/client-options.test.ts', on: [...byAnswers, 'memory'], because: aboveConnections },
  { file: 'test/contract/putting-off.test.ts', on: byScripts, because: aboveConnections },
  { file: 'test/contract/renewal.test.ts', on: [...byAnswers, 'memory'], because: aboveConnections },
  {
    file: 'test/contract/kinds.test.ts',
    on: ['standalone', 'cluster', 'sentinel', 'tls'],
    because:
      'The kind of lock that is made for this test calls commands for which the users of the topology `acl` have no right. A quorum has ' +
      'mutexes only.',
  },
  { file: 'test/contract/semaphore.test.ts', on: withKinds, because: mutexesOnly },
  { file: 'test/contract/groups.test.ts', on: withKinds, because: mutexesOnly },
  { file: 'test/contract/read-write.test.ts', on: withKinds, because: mutexesOnly },
  { file: 'test/contract/other-kinds.test.ts', on: withKinds, because: mutexesOnly },
  {
    file: 'test/contract/queue-options.test.ts',
    on: withKinds,
    because: 'Most of its options need one queue, or a semaphore. test/contract/quorum.test.ts tests `minHold`.',
  },
  { file: 'test/contract/local-handoff.test.ts', on: byRights, because: recordedOnce },
  { file: 'test/contract/local-handoff-lease.test.ts', on: byRights, because: recordedOnce },
  { file: 'test/contract/quorum.test.ts', on: ['quorum'], because: severalServers },
  { file: 'test/contract/quorum-away.test.ts', on: ['quorum'], because: severalServers },
  { file: 'test/contract/quorum-errors.test.ts', on: ['quorum'], because: severalServers },
  ...['connection-source', 'server-refusals', 'close-attempts', 'close-stall', 'unix-socket'].map(name => ({
    file: `test/contract/${name}.test.ts`,
    on: withServers,
    because: 'It tests connections, or what a server refuses or answers late. A store in memory has neither.',
  })),
  {
    file: 'test/contract/single-source.test.ts',
    on: ['standalone'],
    because:
      'It tests the URLs and options that name one server without TLS or a password. The other ways of making a client are tested by all ' +
      'other files, because they make their clients in the way of their topology.',
  },
  {
    file: 'test/contract/restart.test.ts',
    on: single,
    because:
      'Its server crashes and starts again at the same address. If a server has replicas, one of them takes over instead. The tests of ' +
      'that are in test/topology/faults.',
  },
  {
    file: 'test/contract/server-states.test.ts',
    on: single,
    because:
      'It makes its server a replica of a server that does not exist, or stops it from answering for seconds. The nodes of a cluster ' +
      'refuse the first, and sentinels would start a failover. The tests of that are in test/topology/faults.',
  },
]

/** Tests that do not run in memory, although the other tests of their file do: words of their names, and the reason. */
export const needServers: readonly {
  readonly file: string
  readonly tests: readonly string[]
  readonly because: string
}[] = [
  ...Object.entries({
    'bad-input': ['sends nothing'],
    lock: ['I9:', 'leaves nothing', 'deletion of the key'],
    'fair-queue': ['across the loss of the queue'],
    signal: ['nor a channel'],
    inspect: ['inspection changes nothing'],
    'force-release': ['deletion of the lock’s key'],
    errors: ['a forced release and lost data'],
    'client-options': ['token clock', 'of every key and channel'],
    'other-kinds': ['with one SCAN'],
  }).map(([name, tests]) => ({
    file: `test/contract/${name}.test.ts`,
    tests,
    because: 'They read or delete keys in Redis, or count commands and channels.',
  })),
  ...Object.entries({
    'close-told': ['before anything is sent'],
    'force-release': ['faster than the request travels'],
    outage: ['if nothing answers'],
  }).map(([name, tests]) => ({
    file: `test/contract/${name}.test.ts`,
    tests,
    because:
      'Requests or answers are under way for a while. In memory they take no time, and a disconnected client is known to be so.',
  })),
  ...Object.entries({
    errors: ['the socket’s own error'],
    close: ['also when its Redis is out of reach'],
  }).map(([name, tests]) => ({
    file: `test/contract/${name}.test.ts`,
    tests,
    because: 'They are about a socket, or a process of its own that connects.',
  })),
]

/**
 * For each topology, the test files that also run with ioredis 5: those that depend on how a client connects,
 * reconnects, subscribes, and is refused.
 */
export const withIoredis5: Readonly<Record<string, readonly string[]>> = {
  standalone: [
    ...['close', 'connection-source', 'errors', 'fair-queue', 'lock', 'outage', 'restart', 'server-refusals'],
    ...['server-states', 'single-source', 'unix-socket'],
  ]
    .map(file => `test/contract/${file}.test.ts`)
    .concat('test/topology/node-redis.test.ts'),
  cluster: ['connection-source', 'fair-queue', 'lock', 'outage'].map(file => `test/contract/${file}.test.ts`),
  sentinel: ['connection-source', 'lock', 'outage'].map(file => `test/contract/${file}.test.ts`),
  tls: ['test/contract/connection-source.test.ts', 'test/contract/outage.test.ts'],
  acl: ['test/contract/connection-source.test.ts', 'test/contract/server-refusals.test.ts'],
  quorum: ['connection-source', 'outage', 'quorum'].map(file => `test/contract/${file}.test.ts`),
}

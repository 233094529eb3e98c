/**
 * The options of ioredis: which of them the client sets itself, and which names ioredis reads. ioredis ignores an option
 * with any other name. Then it connects to 127.0.0.1:6379, and if a server runs there, each machine has locks of its
 * own. So every other name is refused.
 */
import type { RedisOptions } from 'ioredis'
import { LockArgumentError } from '../errors.ts'
import { clientOptionNames } from '../settings.ts'

/**
 * Options for every connection. With these options, ioredis never sends a command twice on its own, and never leaves a
 * promise unsettled (redis/uplink.ts has the reasons). `keyPrefix` is empty, because redis/keys.ts adds the prefix
 * to keys and channels.
 */
export const manners = {
  lazyConnect: true,
  retryStrategy: () => null,
  enableOfflineQueue: false,
  autoResubscribe: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: null,
  enableReadyCheck: false,
  enableAutoPipelining: false,
  reconnectOnError: null,
  commandTimeout: undefined,
  socketTimeout: undefined,
  connectTimeout: 5_000,
  disconnectTimeout: 200,
  keyPrefix: '',
  // ioredis itself selects no database, because it would go on in database 0 if the server refuses
  // (redis/destination.ts).
  db: 0,
  stringNumbers: false,
  replyMapping: 'legacy',
  monitor: false,
  role: 'master',
  // ioredis asks the sentinels of its list one after another. It may begin in the middle of the list, after the
  // sentinel at which it last stopped, and so reach the end without having asked all sentinels. Then this strategy lets
  // ioredis go through the whole list once. If that fails too, the attempt to connect fails, and redis/uplink.ts
  // connects again.
  sentinelRetryStrategy: times => (times === 1 ? 0 : null),
  // Without a limit, ioredis would wait forever for the answer of a sentinel that hangs.
  sentinelCommandTimeout: 1_000,
  // This option is off because redis/sentinels.ts detects failovers.
  failoverDetector: false,
  readOnly: false,
  scripts: undefined,
  himportFieldsets: undefined,
  // CLIENT SETINFO is turned off because of a fault in ioredis 5. The connection may be lost and replaced before
  // ioredis has sent this command. ioredis then sends the command on the new connection. The answer may make ioredis
  // report the new connection as ready too early.
  disableClientInfo: true,
} satisfies RedisOptions

/** Options that apply only to a connection to the master. For a connection to a sentinel, these values replace them. */
export const elsewhere = {
  sentinels: undefined,
  name: undefined,
  path: '',
  username: undefined,
  password: undefined,
  tls: undefined,
  connectionName: undefined,
  Connector: undefined,
}

/** The options of ioredis 5 and 6 for a connection to one server, or to a master with sentinels. */
export const optionNames: readonly string[] = [
  ...Object.keys({ ...manners, ...elsewhere }),
  ...`host port family keepAlive noDelay protocol blockingTimeout blockingTimeoutGrace clientInfoTag maxLoadingRetryTime
  autoPipeliningIgnoredCommands offlineQueue commandQueue showFriendlyErrorStack sentinelUsername sentinelPassword
  sentinelReconnectStrategy sentinelTLS sentinelMaxConnections enableTLSForSentinelMode updateSentinels preferredSlaves
  natMap`.split(/\s+/),
]

/** The options of a sentinel's address. */
export const addressNames: readonly string[] = ['host', 'port', 'family']

/** What callers mean by names that ioredis does not read. The names are in lower case, without `_` and `-`. */
const meanings: readonly (readonly [RegExp, string])[] = [
  [/^(redis|connection)?(ur[il]|href|dsn|string)$/, 'the URL itself: new LockClient(url)'],
  [/^socket/, '`host` and `port`, or `path`, beside the other options of ioredis; or a client of node-redis'],
  [/^(redis)?(host|ip|addr|address|endpoint|server)(name)?$/, '`host` and `port`'],
  [/sentinel|master/, '`sentinels` and `name`, as ioredis has them, or createSentinel of node-redis'],
  [/node|cluster|servers|slot|scale|redirect/, 'an ioredis Cluster, or createCluster of node-redis'],
  [/^database/, '`db`'],
  [/^(pass|auth|pwd|secret)/, '`password`'],
  [/^user/, '`username`'],
  [/^(ssl|secure)/, '`tls`'],
  [/^unix/, '`path`'],
  [/prefix/, '`keyPrefix`'],
  [/^credentials/, 'a client of node-redis with this option'],
  [/redis|client|conn|conf|opt/, 'the client or the options themselves: new LockClient(redis)'],
  [/^/, 'an option that ioredis reads; it ignores all others'],
]

/** Throws LockArgumentError if one of these options, which are the caller's `what`, has a name that ioredis ignores. */
export function checkNames(options: object, what = 'redis', known = optionNames): void {
  for (const [name, value] of Object.entries(options)) {
    if (known.includes(name)) continue
    if (clientOptionNames.includes(name)) {
      const accepted = `options of LockClient as its second argument: new LockClient(redis, { ${name} })`
      throw new LockArgumentError(`${what}.${name}`, value, accepted)
    }
    const plain = name.toLowerCase().replaceAll(/[_-]/g, '')
    const near = known.find(each => isNear(each.toLowerCase(), plain))
    const meant = near ? `\`${near}\`` : meanings.find(([names]) => names.test(plain))![1]
    // The value may contain a password, so the error does not show it.
    throw new LockArgumentError(`${what}.${name}`, 'no option of ioredis', meant)
  }
}

/** Returns whether the names differ by one letter at most, or by two neighbours that are swapped. */
function isNear(one: string, other: string): boolean {
  const [shorter, longer] = [one, other].sort((a, b) => a.length - b.length) as [string, string]
  let start = 0
  while (start < shorter.length && one[start] === other[start]) start++
  let end = 0
  while (end < shorter.length - start && one.at(-1 - end) === other.at(-1 - end)) end++
  const differs = longer.length - start - end
  return differs < 2 || (differs === 2 && one[start] === other[start + 1] && one[start + 1] === other[start])
}

/**
 * The names of the options that ioredis reads. ioredis ignores an option with any other name. Then it connects to
 * 127.0.0.1:6379, and if a server runs there, each machine has locks of its own. So every other name is refused.
 */
import { LockArgumentError } from '../errors.ts'
import { clientOptionNames } from '../settings.ts'

/** The options of ioredis 5 and 6 for a connection to one server, or to a master with sentinels. */
export const optionNames: readonly string[] = `
  host port family path tls username password db keyPrefix connectionName clientInfoTag disableClientInfo
  protocol replyMapping stringNumbers connectTimeout disconnectTimeout commandTimeout blockingTimeout
  blockingTimeoutGrace socketTimeout keepAlive noDelay lazyConnect retryStrategy reconnectOnError
  maxRetriesPerRequest maxLoadingRetryTime enableOfflineQueue enableReadyCheck enableAutoPipelining
  autoPipeliningIgnoredCommands autoResubscribe autoResendUnfulfilledCommands offlineQueue commandQueue readOnly
  monitor scripts himportFieldsets showFriendlyErrorStack Connector sentinels name role sentinelUsername
  sentinelPassword sentinelRetryStrategy sentinelReconnectStrategy sentinelCommandTimeout sentinelTLS
  sentinelMaxConnections enableTLSForSentinelMode updateSentinels preferredSlaves failoverDetector natMap`
  .trim()
  .split(/\s+/)

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

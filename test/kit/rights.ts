/**
 * The rights that a Redis user needs for the locks. These are the commands that the scripts call, as the build finds
 * them in lua/, and the commands that the client sends itself. docs/operations.md lists them.
 *
 * HELLO and AUTH are not in the list, because Redis allows them to every user. SELECT is not in it, because only a
 * client of another database than 0 sends it (src/redis/destination.ts), and cannot go on without the right to it.
 * ioredis also sends CLIENT SETNAME, and in a cluster CLIENT SETINFO, but works without the right to them.
 */
import type { Replicas } from '../../src/options.ts'
import { Namespace } from '../../src/redis/keys.ts'
import { commandsOf } from '../../src/redis/scripts.ts'

const always = ['EVAL', 'EVALSHA', 'SCAN']
const sent = {
  server: [...always, 'SUBSCRIBE', 'UNSUBSCRIBE'],
  // ioredis needs the right to ASKING while a slot moves. lua/lock.lua needs CLUSTER MYID and PUBSUB.
  cluster: [
    ...always,
    ...['SSUBSCRIBE', 'SUNSUBSCRIBE', 'CLUSTER SLOTS', 'ASKING', 'CLUSTER MYID', 'PUBSUB SHARDNUMSUB'],
  ],
}

/** The options that determine the names of a client's keys and channels, and the rights that the client needs. */
interface Named {
  readonly prefix?: string
  readonly keyPrefix?: string
  readonly cluster?: boolean
  readonly replicas?: Replicas
}

/**
 * Returns rules that give a user exactly the rights that the client needs for these kinds of lock. The rules are to be
 * appended to `ACL SETUSER name on >password`.
 */
export function aclRule(
  kinds: readonly { readonly scripts: { readonly [name: string]: string } | object }[],
  { prefix = 'lock', keyPrefix = '', cluster = false, replicas }: Named = {},
): string[] {
  const { pattern } = new Namespace(`${keyPrefix}${prefix}:`, cluster)
  const scripts = kinds.flatMap(kind => Object.values<string>({ ...kind.scripts }))
  const called = new Set(scripts.flatMap(script => commandsOf(script, cluster)))
  const waits = replicas ? [replicas.fsync ? 'WAITAOF' : 'WAIT'] : []
  const commands = [...sent[cluster ? 'cluster' : 'server'], ...called, ...waits]
  const plus = commands.map(words => `+${words.replace(' ', '|').toLowerCase()}`).sort()
  return ['resetkeys', `~${pattern}`, 'resetchannels', `&${pattern}`, '-@all', ...plus]
}

/**
 * Returns the rules for a user of the sentinels. The user may find the master and the sentinels, and receive the
 * message that the master has changed.
 */
export function sentinelRule(): string[] {
  const asked = ['get-master-addr-by-name', 'sentinels'].map(word => `+sentinel|${word}`)
  return ['resetkeys', 'resetchannels', '&+switch-master', '-@all', ...asked, '+subscribe']
}

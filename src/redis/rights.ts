/**
 * The rights that a Redis user needs for the locks, from one source: the commands that the scripts call, as the build
 * finds them in lua/, and the commands that the client sends itself. The rule in docs/operations.md, the text of a
 * refusal, and the check after connecting are all made from this.
 *
 * HELLO and AUTH need no right: Redis allows them to every user. ioredis sends CLIENT SETNAME, and in a cluster CLIENT
 * SETINFO, but works without them.
 */
import type { ScriptSet } from '../kind.ts'
import type { Replicas } from '../options.ts'
import { Namespace } from './keys.ts'
import { commandsOf } from './scripts.ts'

export interface Rights {
  /** Every command, as a list of its words: `['HSET']`, `['CLUSTER', 'SLOTS']`. */
  readonly commands: readonly (readonly string[])[]
  /** A pattern for both keys and channels. */
  readonly pattern: string
  /** The commands whose argument is a channel: `publish` and `subscribe`. */
  readonly publish: string
  readonly subscribe: string
}

/** Only `list` needs this right, and `list` reports when it is missing. So the check after connecting omits it. */
const OPTIONAL = 'SCAN'

const sent = {
  server: [['EVAL'], ['EVALSHA'], ['SUBSCRIBE'], ['UNSUBSCRIBE'], [OPTIONAL]],
  // ASKING is sent while a slot moves. CLUSTER MYID and PUBSUB are for lua/shared/place.lua.
  cluster: [
    ['EVAL'],
    ['EVALSHA'],
    ['SSUBSCRIBE'],
    ['SUNSUBSCRIBE'],
    [OPTIONAL],
    ['CLUSTER', 'SLOTS'],
    ['ASKING'],
    ['CLUSTER', 'MYID'],
    ['PUBSUB', 'SHARDNUMSUB'],
  ],
}

/** The part of a kind that determines the rights it needs. */
export interface Calling {
  readonly scripts: ScriptSet
}

/** Returns the rights that these kinds need. `waits`: the command that waits for replicas, if `replicas` is set. */
export function rightsFor(
  kinds: Iterable<Calling>,
  { cluster, pattern }: Namespace,
  waits?: 'WAIT' | 'WAITAOF',
): Rights {
  const publish = cluster ? 'SPUBLISH' : 'PUBLISH'
  const scripts = [...kinds].flatMap(kind => Object.values(kind.scripts))
  const called = new Set(scripts.flatMap(script => commandsOf(script, cluster)))
  return {
    commands: [
      ...sent[cluster ? 'cluster' : 'server'],
      ...[...called].map(name => [name]),
      ...(waits ? [[waits]] : []),
    ],
    pattern,
    publish,
    subscribe: cluster ? 'SSUBSCRIBE' : 'SUBSCRIBE',
  }
}

/** The options of LockClient and of ioredis that determine a client's names and rights. */
export interface Named {
  readonly prefix?: string
  readonly keyPrefix?: string
  readonly cluster?: boolean
  readonly replicas?: Replicas | undefined
}

/** Returns the command that waits for replicas. */
export function waitFor(replicas: Named['replicas']): 'WAIT' | 'WAITAOF' | undefined {
  return replicas && (replicas.fsync ? 'WAITAOF' : 'WAIT')
}

/**
 * Returns the rules that give a user exactly the rights that the client needs. They are appended to `ACL SETUSER name
 * on >password`.
 */
export function aclRule(
  kinds: Iterable<Calling>,
  { prefix = 'lock', keyPrefix = '', cluster = false, replicas }: Named = {},
): string[] {
  const { commands, pattern } = rightsFor(kinds, new Namespace(`${keyPrefix}${prefix}:`, cluster), waitFor(replicas))
  const plus = commands.map(plusOf).sort()
  return ['resetkeys', `~${pattern}`, 'resetchannels', `&${pattern}`, '-@all', ...plus]
}

/** Returns the rules for a user of the sentinels, who may find the master and the sentinels, and learn of a switch. */
export function sentinelRule(): string[] {
  const asked = ['get-master-addr-by-name', 'sentinels'].map(word => `+sentinel|${word}`)
  return ['resetkeys', 'resetchannels', '&+switch-master', '-@all', ...asked, '+subscribe']
}

function plusOf(words: readonly string[]): string {
  return `+${words.join('|').toLowerCase()}`
}

/** Commands whose first argument is neither a key nor a channel. */
const bare = new Set([
  ...['TIME', 'EVAL', 'EVALSHA', 'SCAN', 'ASKING', 'CLUSTER', 'PUBSUB', 'UNSUBSCRIBE', 'SUNSUBSCRIBE'],
  ...['WAIT', 'WAITAOF'],
])

/**
 * A script that returns which commands the user may not run, the server's memory limit, and its eviction policy. It
 * needs only the right to EVAL: since version 7.0, any user may call `redis.acl_check_cmd` inside a script. That call
 * does not say whether the command or the channel is denied. So the script runs the publish command itself, and returns
 * its error.
 */
export const question = `
local may, denied, refusal = redis.acl_check_cmd, {}, ''
for i, words in ipairs(may and cjson.decode(ARGV[1]) or {}) do
  local known, allowed = pcall(may, unpack(words))
  if known and not allowed then
    denied[#denied + 1] = i
    if words[1] == ARGV[2] then refusal = redis.pcall(unpack(words)).err end
  end
end
local memory = (not may or may('INFO')) and redis.pcall('INFO', 'memory')
memory = type(memory) == 'string' and memory or ''
return { denied, refusal, string.match(memory, 'maxmemory:(%d+)'), string.match(memory, 'maxmemory_policy:(%S+)') }
`

/**
 * Returns the arguments of `question`, and for each of its answers the right that was checked. `name`: a made-up key
 * and channel.
 */
export function questions({ commands, publish, subscribe }: Rights, name: string) {
  const asked = commands.filter(([word]) => word !== OPTIONAL)
  const words = asked.map(([command, ...rest]) => {
    if (command === publish) return [command, name, '']
    if (command === subscribe) return [command, name]
    if (command === 'EVAL' || command === 'EVALSHA') return [command, '', '0']
    if (command === 'WAIT') return [command, '0', '0']
    if (command === 'WAITAOF') return [command, '0', '0', '0']
    return bare.has(command as string) ? [command, ...rest] : [command, name]
  })
  // EVAL with a key tests the right to that key; the right to EVAL itself is tested before.
  return { rights: asked, args: [JSON.stringify([...words, ['EVAL', '', '1', name]]), publish] }
}

/** Returns the missing rights. The numbers in the answer count from 1, and the last number stands for the key. */
export function missing(
  { pattern, publish, subscribe }: Rights,
  asked: readonly (readonly string[])[],
  answer: RightsAnswer,
) {
  const denied = new Set(answer[0])
  const key = denied.has(asked.length + 1)
  // Since 7.2, the error also contains the names of the user and the channel, so only its fixed words are compared.
  const channel = answer[1] !== '' && !/\brun th(e|is)\b/.test(answer[1])
  const lacking = asked.filter(([command], i) => {
    if (!denied.has(i + 1)) return false
    if (command === publish || command === subscribe) return !channel
    return !key || bare.has(command as string)
  })
  return [...lacking.map(plusOf), ...(key ? [`~${pattern}`] : []), ...(channel ? [`&${pattern}`] : [])]
}

export type RightsAnswer = readonly [denied: readonly number[], refusal: string, maxmemory?: string, policy?: string]

/**
 * The rights that a Redis user needs for the locks. These are the commands that the scripts call, as the build finds
 * them in lua/, and the commands that the client sends itself. This list has three uses: the rule in
 * docs/operations.md, the error when Redis refuses a call for lack of rights, and the check after connecting.
 *
 * HELLO and AUTH are not in the list, because Redis allows them to every user. SELECT is not in it, because only a
 * client of another database than 0 sends it (destination.ts), and cannot go on without the right to it. ioredis also
 * sends CLIENT SETNAME, and in a cluster CLIENT SETINFO, but works without the right to them.
 */
import type { ScriptSet } from '../kind.ts'
import type { Replicas } from '../options.ts'
import { Namespace } from './keys.ts'
import { commandsOf, isAbsent } from './scripts.ts'

export interface Rights {
  /** Every command that the user must be allowed to run, as a list of its words: `['HSET']`, `['CLUSTER', 'SLOTS']`. */
  readonly commands: readonly (readonly string[])[]
  /** The pattern of the keys and channels to which the user must have access. */
  readonly pattern: string
  /** The two commands whose argument is a channel: `publish` and `subscribe`. */
  readonly publish: string
  readonly subscribe: string
}

/** Only `list` needs this right. If the right is missing, `list` reports it, so the check after connecting omits it. */
const OPTIONAL = 'SCAN'

const always = ['EVAL', 'EVALSHA', OPTIONAL]
const sent = {
  server: [...always, 'SUBSCRIBE', 'UNSUBSCRIBE'],
  // ioredis needs the right to ASKING while a slot moves. lua/shared/place.lua needs CLUSTER MYID and PUBSUB.
  cluster: [
    ...always,
    ...['SSUBSCRIBE', 'SUNSUBSCRIBE', 'CLUSTER SLOTS', 'ASKING', 'CLUSTER MYID', 'PUBSUB SHARDNUMSUB'],
  ],
}

/** The scripts of a kind of lock. They determine which rights the kind needs. */
export interface Calling {
  readonly scripts: ScriptSet
}

/** Returns the rights that these kinds need, with the option `replicas`. */
export function rightsFor(
  kinds: Iterable<Calling>,
  { cluster, pattern }: Namespace,
  replicas: Replicas | undefined,
): Rights {
  const waits = replicas && (replicas.fsync ? 'WAITAOF' : 'WAIT')
  const publish = cluster ? 'SPUBLISH' : 'PUBLISH'
  const scripts = [...kinds].flatMap(kind => Object.values(kind.scripts))
  const called = new Set(scripts.flatMap(script => commandsOf(script, cluster)))
  return {
    commands: [...sent[cluster ? 'cluster' : 'server'], ...called, ...(waits ? [waits] : [])].map(words =>
      words.split(' '),
    ),
    pattern,
    publish,
    subscribe: cluster ? 'SSUBSCRIBE' : 'SUBSCRIBE',
  }
}

/** The options that determine the names of a client's keys and channels, and the rights that the client needs. */
export interface Named {
  readonly prefix?: string
  readonly keyPrefix?: string
  readonly cluster?: boolean
  readonly replicas?: Replicas | undefined
}

/**
 * Returns rules that give a user exactly the rights that the client needs. The rules are to be appended to `ACL SETUSER
 * name on >password`.
 */
export function aclRule(
  kinds: Iterable<Calling>,
  { prefix = 'lock', keyPrefix = '', cluster = false, replicas }: Named = {},
): string[] {
  const { commands, pattern } = rightsFor(kinds, new Namespace(`${keyPrefix}${prefix}:`, cluster), replicas)
  const plus = commands.map(plusOf).sort()
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

function plusOf(words: readonly string[]): string {
  return `+${words.join('|').toLowerCase()}`
}

/** Commands whose first argument is neither a key nor a channel. */
const bare = new Set([
  ...['TIME', 'EVAL', 'EVALSHA', 'SCAN', 'ASKING', 'CLUSTER', 'PUBSUB', 'UNSUBSCRIBE', 'SUNSUBSCRIBE'],
  ...['WAIT', 'WAITAOF'],
])

/**
 * A script that returns which commands the user may not run, which commands the server does not have, the server's
 * memory limit, and its eviction policy. The script needs only the right to EVAL, because any user may call
 * `redis.acl_check_cmd` inside a script (since version 7.0). For the publish command, this call does not say whether
 * the command or the channel is denied. So the script runs the publish command and returns its error.
 */
export const question = `
${isAbsent}
local may, denied, refusal, lacking = redis.acl_check_cmd, {}, '', {}
for i, words in ipairs(cjson.decode(ARGV[1])) do
  local known, allowed = pcall(may, unpack(words))
  if known and not allowed then
    denied[#denied + 1] = i
    if words[1] == ARGV[2] then refusal = redis.pcall(unpack(words)).err end
  elseif not known and absent(words[1]) then
    lacking[#lacking + 1] = words[1]
  end
end
local known, allowed = pcall(may, 'INFO')
local memory = (not may or (known and allowed)) and redis.pcall('INFO', 'memory')
memory = type(memory) == 'string' and memory or ''
local limit, policy = string.match(memory, 'maxmemory:(%d+)'), string.match(memory, 'maxmemory_policy:(%S+)')
return { denied, refusal, lacking, limit, policy }
`

/**
 * Returns the arguments of the script `question`, and a function that returns the missing rights from its answer.
 * `name` is used as a key and as a channel; no lock has this name.
 */
export function questions({ commands, pattern, publish, subscribe }: Rights, name: string) {
  const asked = commands.filter(([word]) => word !== OPTIONAL)
  const words = asked.map(([command, ...rest]) => {
    if (command === publish) return [command, name, '']
    if (command === subscribe) return [command, name]
    if (command === 'EVAL' || command === 'EVALSHA') return [command, '', '0']
    if (command === 'WAIT') return [command, '0', '0']
    if (command === 'WAITAOF') return [command, '0', '0', '0']
    return bare.has(command as string) ? [command, ...rest] : [command, name]
  })
  // The last test, EVAL with a key, tests the right to access the keys. The right to EVAL itself is tested before.
  const args = [JSON.stringify([...words, ['EVAL', '', '1', name]]), publish]
  // The numbers in the answer are positions in `asked`, counted from 1. The position after the end is the last test.
  const missing = ([numbers, refusal]: RightsAnswer) => {
    const denied = new Set(numbers)
    const key = denied.has(asked.length + 1)
    // Since Redis 7.2, the error of a refused publish command also contains the names of the user and the channel. So
    // only the fixed words of the error are compared.
    const channel = refusal !== '' && !/\brun th(e|is)\b/.test(refusal)
    const lacking = asked.filter(([command], i) => {
      if (!denied.has(i + 1)) return false
      if (command === publish || command === subscribe) return !channel
      return !key || bare.has(command as string)
    })
    return [...lacking.map(plusOf), ...(key ? [`~${pattern}`] : []), ...(channel ? [`&${pattern}`] : [])]
  }
  return { args, missing }
}

export type RightsAnswer = readonly [
  denied: readonly number[],
  refusal: string,
  lacking: readonly string[],
  maxmemory?: string,
  policy?: string,
]

/**
 * What a user of Redis has to be allowed to do for the locks to work, from one source: the commands that the scripts
 * call, as the build finds them in lua/, and those that the client sends itself. The rule in docs/operations.md, the
 * words of a refusal, and the question that the client asks at its start all come from here.
 *
 * HELLO and AUTH are no rights: Redis allows them to everybody. CLIENT SETNAME, and in a cluster CLIENT SETINFO, are asked
 * for by ioredis, which does without.
 */
import type { ScriptSet } from '../kind.ts'
import type { Replicas } from '../options.ts'
import { Namespace } from './keys.ts'
import { commandsOf } from './scripts.ts'

export interface Rights {
  /** Every command, as its words: `['HSET']`, `['CLUSTER', 'SLOTS']`. */
  readonly commands: readonly (readonly string[])[]
  /** A pattern of keys and channels alike. */
  readonly pattern: string
  /** The commands whose argument is a channel: the one that publishes, and the one that subscribes. */
  readonly publish: string
  readonly subscribe: string
}

/** Only `list` sends it, and says so where it is refused. */
const OPTIONAL = 'SCAN'

const sent = {
  server: [['EVAL'], ['EVALSHA'], ['SUBSCRIBE'], ['UNSUBSCRIBE'], [OPTIONAL]],
  // ASKING: while a slot moves. CLUSTER MYID, PUBSUB: lua/shared/place.lua.
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

/** A kind, as far as rights are concerned. */
export interface Calling {
  readonly scripts: ScriptSet
}

/** `waits`: what is asked of replicas, where the option of that name is set. */
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

/** The names of clients, as in the options of LockClient and of ioredis. */
export interface Named {
  readonly prefix?: string
  readonly keyPrefix?: string
  readonly cluster?: boolean
  readonly replicas?: Replicas | undefined
}

/** The command that asks for replicas. */
export function waitFor(replicas: Named['replicas']): 'WAIT' | 'WAITAOF' | undefined {
  return replicas && (replicas.fsync ? 'WAITAOF' : 'WAIT')
}

/** The rules that give a user what the client needs and nothing else: what stands behind `ACL SETUSER name on >password`. */
export function aclRule(
  kinds: Iterable<Calling>,
  { prefix = 'lock', keyPrefix = '', cluster = false, replicas }: Named = {},
): string[] {
  const { commands, pattern } = rightsFor(kinds, new Namespace(`${keyPrefix}${prefix}:`, cluster), waitFor(replicas))
  const plus = commands.map(plusOf).sort()
  return ['resetkeys', `~${pattern}`, 'resetchannels', `&${pattern}`, '-@all', ...plus]
}

/** The same for a user of the sentinels: to find the master and the other sentinels, and to be told of a switch. */
export function sentinelRule(): string[] {
  const asked = ['get-master-addr-by-name', 'sentinels'].map(word => `+sentinel|${word}`)
  return ['resetkeys', 'resetchannels', '&+switch-master', '-@all', ...asked, '+subscribe']
}

function plusOf(words: readonly string[]): string {
  return `+${words.join('|').toLowerCase()}`
}

/** Commands whose first argument is neither key nor channel. */
const bare = new Set([
  ...['TIME', 'EVAL', 'EVALSHA', 'SCAN', 'ASKING', 'CLUSTER', 'PUBSUB', 'UNSUBSCRIBE', 'SUNSUBSCRIBE'],
  ...['WAIT', 'WAITAOF'],
])

/**
 * Says of commands which of them the user may not run, and of the server how much memory it takes and what it evicts
 * then. Nothing is run for it that needs a right: a server since 7.0 answers such questions inside scripts to everybody.
 * Where it would not say whether it refuses the command or the channel, the command is run, to read it in the refusal.
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

/** What is asked: the arguments of `question`, and the right that each of the answers is about. `name`: of a made-up key and channel. */
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
  // A script that names a key needs the right to it, and no other right that is not asked for already.
  return { rights: asked, args: [JSON.stringify([...words, ['EVAL', '', '1', name]]), publish] }
}

/** Which rights are missing, by the answer: its numbers count from 1, and the last one is the key. */
export function missing(
  { pattern, publish, subscribe }: Rights,
  asked: readonly (readonly string[])[],
  answer: RightsAnswer,
) {
  const denied = new Set(answer[0])
  const key = denied.has(asked.length + 1)
  // Servers since 7.2 name the user and the channel too, so it is the other words that tell.
  const channel = answer[1] !== '' && !/\brun th(e|is)\b/.test(answer[1])
  const lacking = asked.filter(([command], i) => {
    if (!denied.has(i + 1)) return false
    if (command === publish || command === subscribe) return !channel
    return !key || bare.has(command as string)
  })
  return [...lacking.map(plusOf), ...(key ? [`~${pattern}`] : []), ...(channel ? [`&${pattern}`] : [])]
}

export type RightsAnswer = readonly [denied: readonly number[], refusal: string, maxmemory?: string, policy?: string]

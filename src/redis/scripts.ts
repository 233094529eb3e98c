/**
 * Runs the scripts of a kind by name: with EVALSHA, or with EVAL if the server does not know the script. Since Redis
 * 7.4, a server may forget scripts that EVAL loaded, so NOSCRIPT is a normal answer. The caller's ioredis instance gets
 * no new commands.
 */
import { createHash } from 'node:crypto'
import type { ChainableCommander, Cluster, Redis } from 'ioredis'
import { LockConnectionError } from '../errors.ts'
import type { Arguments, Names, Reply, Runner } from '../kind.ts'
import type { Outcome } from '../outcome.ts'
import type { Answer, RefusingServer, Request } from './request.ts'

export interface ScriptRequest<T> extends Required<Request<T>> {
  queue(pipeline: ChainableCommander): void
}

/** Sends script calls to Redis. */
export interface Executor {
  post<T>(request: ScriptRequest<T>, to: Outcome<T>): void
}

interface Loaded {
  readonly sha: string
  /** What stands before the number of the keys of EVALSHA, except the number of parts. */
  readonly head: string
  readonly lua: string
  /** Returns the commands that the script calls. */
  readonly commands: () => readonly string[]
  /** How often the text of the script has been sent. */
  texts: number
}

/**
 * A part of a script that only a cluster needs, inside a Lua comment. For a cluster, `textOf` removes the comment
 * marks.
 */
const clusterOnly = /--\[\[cluster\n([\s\S]*?)--\]\]\n/g

/** Settings that never change for a client. They are written into the scripts' texts, not sent with requests. */
export interface TextSettings {
  /** Whether the scripts publish with SPUBLISH, and run the parts that only clusters need. */
  readonly cluster: boolean
  /** The start of the names of all inboxes. Not used in a cluster, where each lock has inboxes of its own. */
  readonly inboxes: string
  /**
   * How long Redis keeps the token clock of a free lock, in ms. The token clock is the counter from which fencing
   * tokens are made.
   */
  readonly tokenMemory: number
}

/** Returns the text of a script that a client with these settings sends. */
export function textOf(lua: string, { cluster, inboxes, tokenMemory }: TextSettings): string {
  const text = cluster ? lua.replace(clusterOnly, '$1').replaceAll("'PUBLISH'", "'SPUBLISH'") : lua
  const inbox = cluster ? "KEYS[1]..':inbox:'" : quoted(inboxes)
  return text.replace(/\bMEMORY\b/g, String(tokenMemory)).replace(/\bINBOX\b/g, () => inbox)
}

/** Returns `text` as a string literal of Lua. */
function quoted(text: string): string {
  return `'${text.replace(/['\\\0\r\n]/g, odd => `\\${String(odd.charCodeAt(0)).padStart(3, '0')}`)}'`
}

/**
 * Returns the commands that a script calls. Leaves out the parts of the script that only a cluster needs. With
 * `sharded`, SPUBLISH replaces PUBLISH.
 */
export function commandsOf(lua: string, sharded: boolean): string[] {
  const calls = lua.replace(clusterOnly, '').matchAll(/redis\.p?call\('(\w+)'/g)
  const names = [...calls].map(([, name]) => (sharded && name === 'PUBLISH' ? 'SPUBLISH' : name!))
  return [...new Set(names)].sort()
}

/** A script that returns which of the commands in ARGV the server lacks, because they were renamed for instance. */
const absentOnes = `
local lacking = {}
for _, name in ipairs(ARGV) do
  -- Every command that the locks need has arguments or only reads, so this call changes nothing.
  local reply = redis.pcall(name)
  if type(reply) == 'table' and string.find(reply.err or '', 'Unknown Redis command', 1, true) then
    lacking[#lacking + 1] = name
  end
end
return lacking`

/** A script that returns the first of the commands in ARGV that the user may not run. */
const deniedOne = `
for _, name in ipairs(ARGV) do
  local known, allowed = pcall(redis.acl_check_cmd, name, KEYS[1])
  if known and not allowed then return name end
end`

function lackingRight(right: string | undefined, cause: unknown): LockConnectionError {
  return new LockConnectionError(`the Redis user lacks ${right ? `the right ${right}` : 'a right'}`, cause)
}

/** Returns the error of a server that lacks these commands. */
function lackingCommands(names: readonly string[], cause: unknown): LockConnectionError {
  const what = `Redis lacks ${names.join(', ')}, which the locks need; a command must not be renamed`
  return new LockConnectionError(what, cause)
}

export class Scripts<S> implements Runner<S> {
  readonly #executor: Executor
  readonly #loaded = new Map<keyof S, Loaded>()
  readonly #pattern: string

  /** `pattern` matches the keys and channels of the locks. The error of a call that Redis refuses names the pattern. */
  constructor(executor: Executor, scripts: { readonly [N in keyof S]: string }, settings: TextSettings, pattern = '*') {
    this.#executor = executor
    this.#pattern = pattern
    for (const [name, text] of Object.entries<string>(scripts)) {
      const lua = textOf(text, settings)
      const sha = createHash('sha1').update(lua).digest('hex')
      const head = `${END}$7${END}evalsha${END}$40${END}${sha}${END}`
      const commands = () => commandsOf(text, settings.cluster)
      this.#loaded.set(name as keyof S, { lua, commands, texts: 0, sha, head })
    }
  }

  run: Runner<S>['run'] = (name, keys, args, read = reply => reply as never) =>
    new Promise((done, failed) => this.post(name, keys, args, read, { done, failed }))

  post: Runner<S>['post'] = (name, keys, args, read, to) => {
    const script = this.#loaded.get(name) as Loaded
    this.#executor.post(new ScriptCall(script, keys, args, read as Read<never>, this.#pattern), to)
  }
}

type Read<T> = (reply: Reply) => T | Promise<T>

/** The arguments of EVAL or EVALSHA: the script's text or hash, the number of keys, the keys, and other arguments. */
type CallArgs = [script: string, count: string, ...rest: string[]]

/** One call of a script. A class uses less memory than closures, and thousands of calls may be under way. */
class ScriptCall<T> implements ScriptRequest<T> {
  readonly #script: Loaded
  readonly #keys: Names & Written
  readonly #values: Arguments
  readonly #read: Read<T>
  readonly #pattern: string
  /** The arguments of EVALSHA. If the server does not know the script, they become the arguments of EVAL. */
  #list: CallArgs | undefined
  /** The keys that the next call leaves out, because a slot is moving (lua/README.md). */
  #left: string[] | undefined
  #known = true
  /** The value of the script's `texts` when this call was last sent. */
  #texts: number

  constructor(script: Loaded, keys: Names, values: Arguments, read: Read<T>, pattern: string) {
    this.#script = script
    this.#keys = keys
    this.#values = values
    this.#read = read
    this.#pattern = pattern
    this.#texts = script.texts
  }

  get key(): string {
    return this.#keys.lock
  }

  /** Returns the whole command as it is written to the socket; undefined: it has to be sent by `send`. */
  text(): string | undefined {
    return this.#known && !this.#list ? textOfCall(this.#script, this.#keys, this.#values) : undefined
  }

  get args(): CallArgs {
    const { all } = this.#keys
    this.#list ??= [
      this.#script.sha,
      String(all.length),
      ...all,
      ...this.#values.slice(0, countOf(this.#values)).map(String),
    ]
    return this.#list
  }

  queue(pipeline: ChainableCommander): void {
    if (this.#known) pipeline.evalsha(...this.args)
    else pipeline.eval(...this.args)
  }

  send(redis: Redis | Cluster): Promise<unknown> {
    return this.#known ? redis.evalsha(...this.args) : redis.eval(...this.args)
  }

  rephrase(refusal: Error): boolean {
    if (/TRYAGAIN|redirections|non local key/.test(refusal.message)) return this.#regroup(refusal.message)
    if (!this.#known || !refusal.message.startsWith('NOSCRIPT')) return false
    const script = this.#script
    // If several calls get NOSCRIPT, only one of them needs to send the text. The others repeat EVALSHA, which reaches
    // the server after the text.
    const sent = script.texts > this.#texts
    if (!sent) {
      this.#known = false
      this.args[0] = script.lua
      script.texts += 1
    }
    this.#texts = script.texts
    return true
  }

  /**
   * Called when some of the keys are missing on a node while their slot moves. The next call then has only the keys that
   * a lock without a queue has. If such a call is refused too, the one after it has all keys again, after a pause.
   */
  #regroup(refusal: string): boolean {
    const { args } = this
    const count = Number(args[1])
    const { least } = this.#keys
    const missing = this.#left ?? []
    const all = missing.length === 0
    if (all && (least === count || refusal.includes('non local key'))) return false
    const left = all ? args.splice(2 + least, count - least) : []
    args.splice(2 + count, 0, ...missing)
    args[1] = String(count - left.length + missing.length)
    this.#left = left
    return all
  }

  read({ reply, sent, repeated }: Answer<unknown>): T | Promise<T> {
    // Most replies are one word, or two: they need no list.
    const space = typeof reply === 'string' ? reply.indexOf(' ') : -1
    if (typeof reply === 'string' && space < 0) return this.#read({ status: reply, values: [], sent, repeated })
    const values: unknown[] = typeof reply === 'string' ? reply.split(' ') : (reply as unknown[])
    const status = values.shift() as string
    return this.#read({ status, values, sent, repeated })
  }

  explain(error: LockConnectionError, server?: RefusingServer): LockConnectionError | Promise<never> {
    if (server && /\bWRONGTYPE\b/.test(error.message)) return this.#foreign(error, server)
    if (server && /Unknown Redis command/.test(error.message)) return this.#lacking(error, server)
    const [, unknown] = /unknown command ['`](\w+)/i.exec(error.message) ?? []
    if (unknown) return lackingCommands([unknown.toUpperCase()], error.cause)
    if (/scripting engine/.test(error.message)) {
      return new LockConnectionError('the server cannot run Lua; load its module for Lua scripts', error.cause)
    }
    if (!/NOPERM|user executing the script/i.test(error.message)) return error
    const right = this.#deniedBy(error.message)
    return right || !server ? lackingRight(right, error.cause) : this.#denied(error, server)
  }

  /** Returns the right that the refusal names. The error of a command inside a script may name none. */
  #deniedBy(refusal: string): string | undefined {
    const [, command] = /run the '([\w|]+)' command/.exec(refusal) ?? []
    if (command) return `+${command}`
    if (/\bchannels?\b/.test(refusal)) return `&${this.#pattern}`
    return /\bkeys?\b/.test(refusal) ? `~${this.#pattern}` : undefined
  }

  /** Called when the user may not run a command that the script calls. Redis does not say which one, so it is asked. */
  async #denied({ cause }: LockConnectionError, server: RefusingServer): Promise<never> {
    const names = this.#script.commands()
    const asked = server.run(redis => redis.eval(deniedOne, 1, this.key, ...names) as Promise<string | null>)
    const name = await asked.catch(() => null)
    throw lackingRight(name === null ? undefined : `+${name.toLowerCase()}`, cause)
  }

  /** Called when the server lacks a command that the script calls. Redis does not say which one, so it is asked. */
  async #lacking(error: LockConnectionError, server: RefusingServer): Promise<never> {
    const asked = server.run(redis => redis.eval(absentOnes, 0, ...this.#script.commands()) as Promise<string[]>)
    const names = await asked.catch(() => [])
    throw names.length > 0 ? lackingCommands(names, error.cause) : error
  }

  /**
   * Called when one of the lock's keys has the wrong type, because another program has written it. Rejects with an
   * error that names this key. Redis does not say which key has the wrong type, so the type of each key is read. If the
   * user may not read types, rejects with the original error.
   */
  async #foreign(error: LockConnectionError, server: RefusingServer): Promise<never> {
    const names = this.#keys.all
    const found = await Promise.all(names.map(name => server.run(redis => redis.type(name)))).catch(() => [])
    const at = found.findIndex((type, i) => type !== 'none' && type !== (sortedSet.test(names[i]!) ? 'zset' : 'hash'))
    if (at < 0) throw error
    const what = `the key "${names[at]}" is a ${found[at]} that no lock has written; remove this key, or use a different prefix for the locks`
    throw new LockConnectionError(what, error.cause)
  }
}

/** The names of those keys of a lock that are sorted sets; the others are hashes. */
const sortedSet = /:[qdrwt]$/

/** The keys of a call, and the text in which they were last written. */
interface Written {
  [written]?: string
}
const written = Symbol('written')

/**
 * Returns what `args` has as the text of a whole command in Redis's protocol: "*<count>", and each part with its length in
 * bytes. The text of the keys is kept with them, because the next call about the lock has the same.
 */
function textOfCall({ head }: Loaded, keys: Names & Written, values: Arguments): string {
  const { all } = keys
  let text = keys[written]
  if (text === undefined) {
    text = bulk(String(all.length)) + bulks(all)
    // What is put together from parts keeps all of them, until somebody reads it.
    text.charCodeAt(0)
    keys[written] = text
  }
  const count = countOf(values)
  return `*${all.length + count + 3}${head}${text}${bulks(values, count)}`
}

const END = '\r\n'

/** Returns how many values stand before the first undefined one. */
function countOf(values: Arguments): number {
  const end = values.indexOf(undefined)
  return end < 0 ? values.length : end
}

function bulks(values: Arguments, count = values.length): string {
  let text = ''
  for (let i = 0; i < count; i++) text += bulk(String(values[i]))
  return text
}

function bulk(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`
}

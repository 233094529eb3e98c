/**
 * Runs the scripts of a kind by name: with EVALSHA, or with EVAL if the server does not know the script. Since Redis
 * 7.4, a server may forget scripts that EVAL loaded, so NOSCRIPT is a normal answer. The caller's ioredis instance gets
 * no new commands.
 */
import { createHash } from 'node:crypto'
import type { ChainableCommander, Cluster, Redis } from 'ioredis'
import { LockConnectionError } from '../errors.ts'
import type { ArgsOf, KeysOf, Reply, Runner, Script, ScriptSet } from '../kind.ts'
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
  readonly keys: readonly string[]
  readonly least: number | undefined
  readonly args: readonly string[]
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
export function textOf({ lua }: Pick<Script, 'lua'>, { cluster, inboxes, tokenMemory }: TextSettings): string {
  const text = cluster ? lua.replace(clusterOnly, '$1').replaceAll("'PUBLISH'", "'SPUBLISH'") : lua
  const inbox = cluster ? "KEYS[1]..':inbox:'" : quoted(inboxes)
  return text.replace(/\bMEMORY\b/g, String(tokenMemory)).replace(/\bINBOX\b/g, () => inbox)
}

/** The key that a script receives only in a cluster (lua/README.md). */
const ONLY_IN_CLUSTER = 'none'

/** Returns `text` as a string literal of Lua. */
function quoted(text: string): string {
  return `'${text.replace(/['\\\0\r\n]/g, odd => `\\${String(odd.charCodeAt(0)).padStart(3, '0')}`)}'`
}

/**
 * Returns the commands that a script calls. Leaves out the parts of the script that only a cluster needs. With
 * `sharded`, SPUBLISH replaces PUBLISH.
 */
export function commandsOf({ lua }: Script, sharded: boolean): string[] {
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

export class Scripts<S extends ScriptSet> implements Runner<S> {
  readonly #executor: Executor
  readonly #loaded: { readonly [N in keyof S]: Loaded }
  readonly #pattern: string

  /** `pattern` matches the keys and channels of the locks. The error of a call that Redis refuses names the pattern. */
  constructor(executor: Executor, scripts: S, settings: TextSettings, pattern = '*') {
    this.#executor = executor
    this.#pattern = pattern
    const load = (script: Script): Loaded => {
      const { args } = script
      const least = settings.cluster ? script.least : undefined
      const keys = listOf(settings.cluster ? script.keys : script.keys.filter(name => name !== ONLY_IN_CLUSTER))
      const lua = textOf(script, settings)
      const commands = () => commandsOf(script, settings.cluster)
      const sha = createHash('sha1').update(lua).digest('hex')
      const head = `${END}$7${END}evalsha${END}$40${END}${sha}${END}`
      return { lua, keys, least, args, commands, texts: 0, sha, head }
    }
    this.#loaded = Object.fromEntries(Object.entries(scripts).map(([name, script]) => [name, load(script)])) as {
      [N in keyof S]: Loaded
    }
  }

  run<N extends keyof S, T = Reply<S[N]>>(
    name: N,
    keys: KeysOf<S[N]>,
    values: ArgsOf<S[N]>,
    read: (reply: Reply<S[N]>) => T | Promise<T> = reply => reply as T,
  ): Promise<T> {
    return new Promise((done, failed) => this.post(name, keys, values, read, { done, failed }))
  }

  post<N extends keyof S, T>(
    name: N,
    keys: KeysOf<S[N]>,
    values: ArgsOf<S[N]>,
    read: (reply: Reply<S[N]>) => T | Promise<T>,
    to: Outcome<T>,
  ): void {
    this.#executor.post(new ScriptCall<S[N], T>(this.#loaded[name], keys, values, read, this.#pattern), to)
  }
}

/** The arguments of EVAL or EVALSHA: the script's text or hash, the number of keys, the keys, and other arguments. */
type CallArgs = [script: string, count: string, ...rest: string[]]

/** One call of a script. A class uses less memory than closures, and thousands of calls may be under way. */
class ScriptCall<S extends Script, T> implements ScriptRequest<T> {
  readonly #script: Loaded
  readonly #keys: KeysOf<S>
  readonly #values: ArgsOf<S>
  readonly #read: (reply: Reply<S>) => T | Promise<T>
  readonly #pattern: string
  /** The arguments of EVALSHA. If the server does not know the script, they become the arguments of EVAL. */
  #list: CallArgs | undefined
  /** The keys that the next call leaves out, because a slot is moving (lua/README.md). */
  #left: string[] | undefined
  #known = true
  /** The value of the script's `texts` when this call was last sent. */
  #texts: number

  constructor(
    script: Loaded,
    keys: KeysOf<S>,
    values: ArgsOf<S>,
    read: (reply: Reply<S>) => T | Promise<T>,
    pattern: string,
  ) {
    this.#script = script
    this.#keys = keys
    this.#values = values
    this.#read = read
    this.#pattern = pattern
    this.#texts = script.texts
  }

  get key(): string {
    const [name] = this.#script.keys
    const key = this.#keys[name as keyof KeysOf<S>] as string | readonly string[]
    return typeof key === 'string' ? key : (key[0] as string)
  }

  /** Returns the whole command as it is written to the socket; undefined: it has to be sent by `send`. */
  text(): string | undefined {
    return this.#known && !this.#list ? textOfCall(this.#script, this.#keys, this.#values) : undefined
  }

  get args(): CallArgs {
    this.#list ??= argsOf(this.#script, this.#keys, this.#values)
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
    const least = this.#script.least === 0 ? count / 2 : (this.#script.least ?? count)
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
    const status = values.shift() as Reply<S>['status']
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
   * error that names this key. A lock's first key is a hash, and so is the key with the shares of groups. All other keys
   * are sorted sets. Redis does not say which key has the wrong type, so the type of each key is read. If the user may
   * not read types, rejects with the original error.
   */
  async #foreign(error: LockConnectionError, server: RefusingServer): Promise<never> {
    const names = Object.values<KeysOf<S>[keyof KeysOf<S>]>(this.#keys).flat() as string[]
    const hashes = [names[0], (this.#keys as { readonly shares?: string }).shares]
    const found = await Promise.all(names.map(name => server.run(redis => redis.type(name)))).catch(() => [])
    const at = found.findIndex((type, i) => type !== 'none' && type !== (hashes.includes(names[i]) ? 'hash' : 'zset'))
    if (at < 0) throw error
    const what = `the key "${names[at]}" is a ${found[at]} that no lock has written; remove this key, or use a different prefix for the locks`
    throw new LockConnectionError(what, error.cause)
  }
}

type Values = Readonly<Record<string, unknown>>

/**
 * Returns the arguments of EVALSHA: the keys and the arguments that the head of the script's Lua file lists, in that
 * order. Each of the two lists stops at the first undefined value.
 */
function argsOf({ sha, keys, args }: Loaded, keyValues: Values, argValues: Values): CallArgs {
  const call: CallArgs = [sha, '']
  for (let names = keys, values = keyValues; ; names = args, values = argValues) {
    for (const name of names) {
      const value = values[name]
      if (value === undefined) break
      if (Array.isArray(value)) for (const item of value) call.push(String(item))
      else call.push(String(value))
    }
    if (names === args) return call
    call[1] = String(call.length - 2)
  }
}

/** The names of a lock's keys, and the text in which they were last written. */
interface Written {
  [written]?: { readonly keys: readonly string[]; readonly count: number; readonly text: string }
}
const written = Symbol('written')

/**
 * Returns what `argsOf` returns as the text of a whole command in Redis's protocol: "*<count>", and each part with its
 * length in bytes. The text of the keys is kept with their names, because the next call about the lock has the same.
 */
function textOfCall({ head, keys, args }: Loaded, names: Values & Written, values: Values): string {
  let known = names[written]
  if (known?.keys !== keys) {
    const [count, text] = bulks(keys, names)
    known = { keys, count, text: bulk(String(count)) + text }
    // What is put together from parts keeps all of them, until somebody reads it.
    known.text.charCodeAt(0)
    names[written] = known
  }
  const [count, text] = bulks(args, values)
  return `*${known.count + count + 3}${head}${known.text}${text}`
}

const END = '\r\n'

/** Lists of the same keys are one list, so that scripts share the text of their keys. */
const lists = new Map<string, readonly string[]>()

function listOf(keys: readonly string[]): readonly string[] {
  const text = keys.join()
  const list = lists.get(text) ?? keys
  lists.set(text, list)
  return list
}

/** Returns how many parts the values of these names are, and their text. Stops at the first undefined value. */
function bulks(names: readonly string[], values: Values): [count: number, text: string] {
  let count = 0
  let text = ''
  for (const name of names) {
    const value = values[name]
    if (value === undefined) break
    if (Array.isArray(value)) {
      for (const item of value) text += bulk(String(item))
      count += value.length
    } else {
      text += bulk(String(value))
      count += 1
    }
  }
  return [count, text]
}

function bulk(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`
}

/**
 * Runs the scripts of a kind by name: EVALSHA, and EVAL where the server does not know the script (any more: since
 * Redis 7.4 it forgets scripts that EVAL loaded, so NOSCRIPT is ordinary). Nothing is defined on the caller's client.
 */
import { createHash } from 'node:crypto'
import type { ChainableCommander, Cluster, Redis } from 'ioredis'
import { LockConnectionError } from '../errors.ts'
import type { ArgsOf, KeysOf, Reply, Runner, Script, ScriptSet } from '../kind.ts'
import type { Answer, Request, Server } from './request.ts'

export interface ScriptRequest<T> extends Required<Request<T>> {
  /** The first of its keys. */
  readonly key: string
  /** As a command in a pipeline. */
  queue(pipeline: ChainableCommander): void
}

/** Where the scripts run. */
export interface Executor {
  ask<T>(request: ScriptRequest<T>): Promise<T>
}

interface Loaded {
  readonly sha: string
  readonly lua: string
  readonly keys: readonly string[]
  readonly args: readonly string[]
  /** The commands that it calls. */
  readonly commands: () => readonly string[]
  /** How often its text was sent. */
  texts: number
}

/** A comment to others. */
const clusterOnly = /--\[\[cluster\n([\s\S]*?)--\]\]\n/g

/** What never changes for a client, and so is part of the texts that it sends, and of no request. */
export interface TextSettings {
  /** Publish by SPUBLISH, and run what lua/ has for clusters only. */
  readonly cluster: boolean
  /** What the channels of grants begin with, but in a cluster, where each lock has its own. */
  readonly inboxes: string
  /** How long a free lock's clock is kept, in ms. */
  readonly tokenMemory: number
}

/** The text of a script as a client with these settings sends it. */
export function textOf({ lua }: Pick<Script, 'lua'>, { cluster, inboxes, tokenMemory }: TextSettings): string {
  const text = cluster ? lua.replace(clusterOnly, '$1').replaceAll("'PUBLISH'", "'SPUBLISH'") : lua
  const inbox = cluster ? "KEYS[1]..':inbox:'" : quoted(inboxes)
  return text.replace(/\bMEMORY\b/g, String(tokenMemory)).replace(/\bINBOX\b/g, () => inbox)
}

/** As a literal of Lua. */
function quoted(text: string): string {
  return `'${text.replace(/['\\\0\r\n]/g, odd => `\\${String(odd.charCodeAt(0)).padStart(3, '0')}`)}'`
}

/** The commands that a script calls, but for what only a cluster runs. */
export function commandsOf({ lua }: Script, sharded: boolean): string[] {
  const calls = lua.replace(clusterOnly, '').matchAll(/redis\.p?call\('(\w+)'/g)
  const names = [...calls].map(([, name]) => (sharded && name === 'PUBLISH' ? 'SPUBLISH' : name!))
  return [...new Set(names)].sort()
}

export class Scripts<S extends ScriptSet> implements Runner<S> {
  readonly #executor: Executor
  readonly #loaded: { readonly [N in keyof S]: Loaded }
  readonly #pattern: string

  /** `pattern`: of keys and channels, for those who are refused. */
  constructor(executor: Executor, scripts: S, settings: TextSettings, pattern = '*') {
    this.#executor = executor
    this.#pattern = pattern
    const load = (script: Script): Loaded => {
      const { keys, args } = script
      const lua = textOf(script, settings)
      const commands = () => commandsOf(script, settings.cluster)
      return { lua, keys, args, commands, texts: 0, sha: createHash('sha1').update(lua).digest('hex') }
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
    const script = this.#loaded[name]
    const args: CallArgs = [script.sha, '']
    list(args, script.keys, keys)
    args[1] = String(args.length - 2)
    list(args, script.args, values)
    return this.#executor.ask(new ScriptCall(script, args, read, this.#pattern, keys))
  }
}

/** The script, or its hash; how many keys; the keys, and what follows them. */
type CallArgs = [script: string, count: string, ...rest: string[]]

/** One call of a script. A class, not an object with closures: thousands may be under way, and each costs what it is made of. */
class ScriptCall<S extends Script, T> implements ScriptRequest<T> {
  readonly #script: Loaded
  /** Of EVALSHA; of EVAL, once the script has turned out to be unknown. */
  readonly #args: CallArgs
  readonly #read: (reply: Reply<S>) => T | Promise<T>
  readonly #pattern: string
  /** All that its lock has, also where only the first is sent. */
  readonly #keys: KeysOf<S>
  #known = true
  /** The `texts` of its script when it was sent. */
  #texts: number

  constructor(
    script: Loaded,
    args: CallArgs,
    read: (reply: Reply<S>) => T | Promise<T>,
    pattern: string,
    keys: KeysOf<S>,
  ) {
    this.#keys = keys
    this.#script = script
    this.#args = args
    this.#read = read
    this.#pattern = pattern
    this.#texts = script.texts
  }

  get key(): string {
    return this.#args[2] as string
  }

  queue(pipeline: ChainableCommander): void {
    if (this.#known) pipeline.evalsha(...this.#args)
    else pipeline.eval(...this.#args)
  }

  send(redis: Redis | Cluster): Promise<unknown> {
    return this.#known ? redis.evalsha(...this.#args) : redis.eval(...this.#args)
  }

  rephrase(refusal: Error): boolean {
    if (!this.#known || !refusal.message.startsWith('NOSCRIPT')) return false
    const script = this.#script
    // Thousands may be refused before the first of them has sent the text; it is then ahead of those that ask again.
    const sent = script.texts > this.#texts
    if (!sent) {
      this.#known = false
      this.#args[0] = script.lua
      script.texts += 1
    }
    this.#texts = script.texts
    return true
  }

  read({ reply, sent, repeated }: Answer<unknown>): T | Promise<T> {
    const values: unknown[] = typeof reply === 'string' ? reply.split(' ') : (reply as unknown[])
    const status = values.shift() as Reply<S>['status']
    return this.#read({ status, values, sent, repeated })
  }

  explain(error: LockConnectionError, server?: Server): LockConnectionError | Promise<never> {
    if (server && /\bWRONGTYPE\b/.test(error.message)) return this.#foreign(error, server)
    return withRights(error, this.#script.commands(), this.#pattern)
  }

  /**
   * Something else has written a key of the lock, of which the first is a hash, and the others are sorted sets. Redis does not say
   * which; the one who may not ask it is told no more than by Redis.
   */
  async #foreign(error: LockConnectionError, server: Server): Promise<never> {
    const names = Object.values<KeysOf<S>[keyof KeysOf<S>]>(this.#keys).flat() as string[]
    const found = await Promise.all(names.map(name => server.run(redis => redis.type(name)))).catch(() => [])
    const at = found.findIndex((type, i) => type !== 'none' && type !== (i === 0 ? 'hash' : 'zset'))
    if (at < 0) throw error
    const what = `the key "${names[at]}" is a ${found[at]} that no lock has written: remove it, or use a different prefix for the locks`
    throw new LockConnectionError(what, error.cause)
  }
}

/** Appends the values in the order of the header's names, as far as they are there. */
function list(to: string[], names: readonly string[], values: Readonly<Record<string, unknown>>): void {
  for (const name of names) {
    const value = values[name]
    if (value === undefined) break
    if (Array.isArray(value)) for (const item of value) to.push(String(item))
    else to.push(String(value))
  }
}

/** Where Redis refuses a command inside a script, older servers do not say which. So the error says what the script needs. */
function withRights(error: LockConnectionError, commands: readonly string[], pattern: string): LockConnectionError {
  if (!(error.cause instanceof Error)) return error
  if (!/NOPERM|user executing the script/i.test(error.cause.message)) return error
  const rights = ['EVALSHA', 'EVAL', ...commands].map(command => `+${command.toLowerCase()}`).join(' ')
  return new LockConnectionError(
    `Redis refused, because its user lacks a right; it needs ~${pattern} &${pattern} ${rights}`,
    error.cause,
  )
}

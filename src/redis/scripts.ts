/**
 * Runs the scripts of lua/ by name: EVALSHA, and EVAL where the server does not know the script (any more: since
 * Redis 7.4 it forgets scripts that EVAL loaded, so NOSCRIPT is ordinary). Nothing is defined on the caller's client.
 */
import { createHash } from 'node:crypto'
import type { ChainableCommander, Cluster, Redis } from 'ioredis'
import { LockConnectionError } from '../errors.ts'
import type { Connection } from './connection.ts'
import type { Answer, Request } from './request.ts'
import { scripts } from './scripts.generated.ts'

export type ScriptName = keyof typeof scripts

type Script<N extends ScriptName> = (typeof scripts)[N]

/** The KEYS of a script by the names in its header; `locks...` takes a list. */
export type KeysOf<N extends ScriptName> = { readonly [K in Script<N>['keys'][number]]: string | readonly string[] }
/** The ARGV of a script by the names in its header; undefined ones may only be the last. */
export type ArgsOf<N extends ScriptName> = {
  readonly [K in Script<N>['args'][number]]: string | number | undefined | readonly (string | number)[]
}

/**
 * What a script replied: a status word of its header, and what that word brings. The frequent replies are texts, whose
 * words are strings here: Redis and ioredis take several µs more for an array.
 */
export interface Reply<N extends ScriptName> {
  readonly status: Script<N>['replies'][number]
  readonly values: unknown[]
  readonly sent: number
  readonly repeated: boolean
}

export interface ScriptRequest<T> extends Required<Request<T>> {
  /** The first of its keys. */
  readonly key: string
  /** As a command in a pipeline. */
  queue(pipeline: ChainableCommander): void
}

/** Runs scripts by name. Rejects with LockConnectionError. Safe to repeat: so is every script. */
export interface Runner {
  /** `read`: what to make of the reply, in the moment when it has come; a promise, where more has to be asked for it. */
  run<N extends ScriptName, T = Reply<N>>(
    name: N,
    keys: KeysOf<N>,
    args: ArgsOf<N>,
    read?: (reply: Reply<N>) => T | Promise<T>,
  ): Promise<T>
}

interface Loaded {
  readonly sha: string
  readonly lua: string
  readonly keys: readonly string[]
  readonly args: readonly string[]
  readonly commands: readonly string[]
  /** How often its text was sent. */
  texts: number
}

/** A comment to others. */
const clusterOnly = /--\[\[cluster\n([\s\S]*?)--\]\]\n/g

export class Scripts implements Runner {
  readonly #connection: Connection
  readonly #loaded: { readonly [N in ScriptName]: Loaded }
  readonly #pattern: string

  /** `sharded`: publish by SPUBLISH, and run what lua/ has for clusters only. `pattern`: of keys and channels, for those who are refused. */
  constructor(connection: Connection, sharded: boolean, pattern = '*') {
    this.#connection = connection
    this.#pattern = pattern
    const publish = sharded ? 'SPUBLISH' : 'PUBLISH'
    const load = ({ lua: text, keys, args, commands: called }: Script<ScriptName>): Loaded => {
      const lua = sharded ? text.replace(clusterOnly, '$1').replaceAll("'PUBLISH'", `'${publish}'`) : text
      const commands = called.map(command => (command === 'PUBLISH' ? publish : command))
      return { lua, keys, args, commands, texts: 0, sha: createHash('sha1').update(lua).digest('hex') }
    }
    this.#loaded = Object.fromEntries(Object.entries(scripts).map(([name, script]) => [name, load(script)])) as {
      [N in ScriptName]: Loaded
    }
  }

  run<N extends ScriptName, T = Reply<N>>(
    name: N,
    keys: KeysOf<N>,
    args: ArgsOf<N>,
    read: (reply: Reply<N>) => T | Promise<T> = reply => reply as T,
  ): Promise<T> {
    return this.#connection.ask(this.request(name, keys, args, read))
  }

  /** What `run` asks of its connection. */
  request<N extends ScriptName, T>(
    name: N,
    keys: KeysOf<N>,
    values: ArgsOf<N>,
    read: (reply: Reply<N>) => T | Promise<T>,
  ): ScriptRequest<T> {
    const script = this.#loaded[name]
    const args: CallArgs = [script.sha, '']
    list(args, script.keys, keys)
    args[1] = String(args.length - 2)
    list(args, script.args, values)
    return new ScriptCall(script, args, read, this.#pattern)
  }
}

/** The script, or its hash; how many keys; the keys, and what follows them. */
type CallArgs = [script: string, count: string, ...rest: string[]]

/** One call of a script. A class, not an object with closures: thousands may be under way, and each costs what it is made of. */
class ScriptCall<N extends ScriptName, T> implements ScriptRequest<T> {
  readonly #script: Loaded
  /** Of EVALSHA; of EVAL, once the script has turned out to be unknown. */
  readonly #args: CallArgs
  readonly #read: (reply: Reply<N>) => T | Promise<T>
  readonly #pattern: string
  #known = true
  /** The `texts` of its script when it was sent. */
  #texts: number

  constructor(script: Loaded, args: CallArgs, read: (reply: Reply<N>) => T | Promise<T>, pattern: string) {
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
    const status = values.shift() as Reply<N>['status']
    return this.#read({ status, values, sent, repeated })
  }

  explain(error: LockConnectionError): LockConnectionError {
    return withRights(error, this.#script.commands, this.#pattern)
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
  return new LockConnectionError(`Redis refused, its user needs ~${pattern} &${pattern} ${rights}`, error.cause)
}

/**
 * Runs the scripts of lua/ by name: EVALSHA, and EVAL where the server does not know the script (any more: since
 * Redis 7.4 it forgets scripts that EVAL loaded, so NOSCRIPT is ordinary). Nothing is defined on the caller's client.
 */
import { createHash } from 'node:crypto'
import type { Cluster, Redis } from 'ioredis'
import { LockConnectionError } from '../errors.ts'
import type { Connection } from './connection.ts'
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

interface Loaded {
  readonly sha: string
  readonly lua: string
  readonly keys: readonly string[]
  readonly args: readonly string[]
  readonly commands: readonly string[]
}

/** A comment to others. */
const clusterOnly = /--\[\[cluster\n([\s\S]*?)--\]\]\n/g

export class Scripts {
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
      return { lua, keys, args, commands, sha: createHash('sha1').update(lua).digest('hex') }
    }
    this.#loaded = Object.fromEntries(Object.entries(scripts).map(([name, script]) => [name, load(script)])) as {
      [N in ScriptName]: Loaded
    }
  }

  /** Rejects with LockConnectionError. Safe to repeat: so is every script. */
  run<N extends ScriptName>(name: N, keys: KeysOf<N>, args: ArgsOf<N>): Promise<Reply<N>> {
    const { sha, lua, commands, ...names } = this.#loaded[name]
    const parameters: string[] = []
    list(parameters, names.keys, keys)
    const count = parameters.length
    list(parameters, names.args, args)
    const send = (redis: Redis | Cluster) =>
      redis.evalsha(sha, count, ...parameters).catch(error => {
        if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
        return redis.eval(lua, count, ...parameters)
      }) as Promise<string | unknown[]>
    return this.#connection.run(send).then(
      ({ reply, sent, repeated }) => {
        const [status, ...values] = typeof reply === 'string' ? reply.split(' ') : reply
        return { status: status as Reply<N>['status'], values, sent, repeated }
      },
      error => {
        throw withRights(error, commands, this.#pattern)
      },
    )
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
function withRights(error: unknown, commands: readonly string[], pattern: string): unknown {
  if (!(error instanceof LockConnectionError && error.cause instanceof Error)) return error
  if (!/NOPERM|user executing the script/i.test(error.cause.message)) return error
  const rights = ['EVALSHA', 'EVAL', ...commands].map(command => `+${command.toLowerCase()}`).join(' ')
  return new LockConnectionError(`Redis refused, its user needs ~${pattern} &${pattern} ${rights}`, error.cause)
}

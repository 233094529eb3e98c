/**
 * Checks each server after a connection to it has come up, for problems that cause no error at first: the user lacks a
 * right, the server lacks a command, or locks may be evicted. The check is one script call for each master, sent after
 * all commands that waited for the connection. No call waits for the check. If the server does not answer it, nothing is
 * reported.
 */
import type { Redis } from 'ioredis'
import { LockConnectionError, LockError } from '../errors.ts'
import type { Settings } from '../settings.ts'
import { hostAndPort } from './census.ts'
import type { Link } from './link.ts'
import { type Calling, question, questions, type RightsAnswer, rightsFor } from './rights.ts'
import { lackingCommands } from './scripts.ts'
import { withoutArguments } from './without-arguments.ts'

export class Survey {
  readonly #link: Link
  readonly #replicas: Settings['replicas']
  readonly #warn: (error: LockError) => void
  /** The last warnings about each server. The same warnings are not repeated when a connection comes up again. */
  readonly #said = new Map<string, string>()
  /** The check of the rights. Undefined: no kind of lock is in use yet. */
  #asked: ReturnType<typeof questions> | undefined

  constructor(link: Link, { replicas }: Settings, warn: (error: LockError) => void) {
    this.#link = link
    this.#replicas = replicas
    this.#warn = warn
  }

  /** From now on, the checks also test the rights that these kinds of lock need. */
  need(kinds: readonly Calling[]): void {
    const { names, ids } = this.#link
    // The check uses the name of a lock that does not exist. Each client has such a name of its own.
    this.#asked = questions(rightsFor(kinds, names, this.#replicas), `${names.root}{${ids.client}}`)
  }

  /** Starts the check and returns at once. Never fails. */
  look(): void {
    const { redis } = this.#link.commands
    if (!('nodes' in redis)) return void this.#ask(redis, '')
    for (const node of redis.nodes('master')) this.#ask(node, ` at ${hostAndPort(node.options)}`)
  }

  async #ask(redis: Redis, at: string): Promise<void> {
    if (!this.#asked) return
    const { args, missing } = this.#asked
    const answer = redis.eval(question, 0, ...args) as Promise<RightsAnswer>
    const errors = await answer.then(
      found => {
        const denied = missing(found).join(' ')
        const [, , absent] = found
        const gone = absent.length > 0 ? lackingCommands(absent, at) : undefined
        return [denied ? lacks(denied, at) : undefined, gone, evicting(found, at)].filter(error => error !== undefined)
      },
      (error: Error) => [refused(error, at)].filter(found => found !== undefined),
    )
    const text = errors.map(({ message }) => message).join('\n')
    if (text === (this.#said.get(at) ?? '')) return
    this.#said.set(at, text)
    for (const error of errors) this.#warn(error)
  }
}

/**
 * Turns an error of the check into a warning. NOPERM means that the user may not run scripts, so the check cannot run.
 * All other errors give no warning, because ordinary calls fail with them and report them.
 */
function refused(error: Error, at: string): LockError | undefined {
  return /^NOPERM\b/.test(error.message) ? lacks('+eval', at, withoutArguments(error)) : undefined
}

function lacks(rights: string, at: string, cause?: Error): LockError {
  return new LockConnectionError(`the Redis user${at} lacks the rights ${rights}`, cause)
}

function evicting([, , , maxmemory, policy]: RightsAnswer, at: string): LockError | undefined {
  if (!policy || policy === 'noeviction' || Number(maxmemory) === 0) return undefined
  return new LockError(
    'ERR_LOCK_EVICTION',
    `Redis${at} may evict locks: maxmemory is ${maxmemory} and maxmemory-policy is ${policy}; set maxmemory-policy to noeviction`,
  )
}

/**
 * A look at each server when a connection to it has come up, for what would go wrong later, and quietly: a right that
 * the user lacks, and locks that may be evicted. One script call for each master, behind everything that was waiting
 * for the connection; nobody waits for its answer, and where there is none, nothing is said.
 */
import type { Cluster, Redis } from 'ioredis'
import { LockConnectionError, LockError } from '../errors.ts'
import type { Settings } from '../options.ts'
import type { Namespace } from './keys.ts'
import {
  type Calling,
  missing,
  question,
  questions,
  type Rights,
  type RightsAnswer,
  rightsFor,
  waitFor,
} from './rights.ts'

export class Survey {
  readonly #redis: Redis | Cluster
  readonly #names: Namespace
  readonly #madeUp: string
  readonly #replicas: Settings['replicas']
  readonly #warn: (error: LockError) => void
  /** The last warnings about each server: a connection that comes and goes is no reason to repeat them. */
  readonly #said = new Map<string, string>()
  /** What is asked at each look; undefined: nothing yet. */
  #asked: { readonly rights: Rights; readonly args: string[]; readonly each: Rights['commands'] } | undefined

  /** `word`: for the name of a made-up lock, unlike those of other clients. */
  constructor(
    redis: Redis | Cluster,
    names: Namespace,
    word: string,
    { replicas }: Settings,
    warn: (error: LockError) => void,
  ) {
    this.#redis = redis
    this.#names = names
    this.#madeUp = `${names.root}{${word}}`
    this.#replicas = replicas
    this.#warn = warn
  }

  /** From now on it looks for the rights that these kinds need. */
  need(kinds: readonly Calling[]): void {
    const rights = rightsFor(kinds, this.#names, waitFor(this.#replicas))
    const { rights: each, args } = questions(rights, this.#madeUp)
    this.#asked = { rights, args, each }
  }

  /** Returns at once, and never fails. */
  look(): void {
    if (!('nodes' in this.#redis)) return void this.#ask(this.#redis, '')
    for (const node of this.#redis.nodes('master')) this.#ask(node, ` at ${node.options.host}:${node.options.port}`)
  }

  async #ask(redis: Redis, at: string): Promise<void> {
    if (!this.#asked) return
    const { rights, args, each } = this.#asked
    const answer = redis.eval(question, 0, ...args) as Promise<RightsAnswer>
    const errors = await answer.then(
      found => {
        const lacking = missing(rights, each, found).join(' ')
        return [lacking ? lacks(lacking, at) : undefined, evicting(found, at)].filter(error => error !== undefined)
      },
      (error: Error) => [refused(error, at)].filter(found => found !== undefined),
    )
    const text = errors.map(({ message }) => message).join('\n')
    if (text === (this.#said.get(at) ?? '')) return
    this.#said.set(at, text)
    for (const error of errors) this.#warn(error)
  }
}

/** Without the right to ask, the first one that is missing is that. Any other error is for those calls to report that somebody waits for. */
function refused(error: Error, at: string): LockError | undefined {
  return /^NOPERM\b/.test(error.message) ? lacks('+eval', at, error) : undefined
}

function lacks(rights: string, at: string, cause?: Error): LockError {
  return new LockConnectionError(`the Redis user${at} lacks the rights ${rights}`, cause)
}

function evicting([, , maxmemory, policy]: RightsAnswer, at: string): LockError | undefined {
  if (!policy || policy === 'noeviction' || Number(maxmemory) === 0) return undefined
  return new LockError(
    'ERR_LOCK_EVICTION',
    `Redis${at} may evict locks: maxmemory is ${maxmemory} and maxmemory-policy is ${policy}; set maxmemory-policy to noeviction`,
  )
}

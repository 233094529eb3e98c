/** Looking at locks from outside, and taking one away. */
import type { Cluster, Redis } from 'ioredis'
import { LockConnectionError } from '../../errors.ts'
import { newHoldId } from '../../redis/ids.ts'
import type { Link } from '../../redis/link.ts'
import { glob } from './glob.ts'
import type { Mutex } from './mutex.ts'
import { decodeState, type LockState, type QueueEntry, type StatePage } from './state.ts'

/** Keys asked for in one SCAN, states read at a time, and waiters read by one script call: it bounds how long the server does nothing else. */
const PAGE = 500

export class Inspection {
  readonly #link: Link
  readonly #mutex: Mutex
  readonly #tokenMemory: number

  constructor(link: Link, mutex: Mutex, tokenMemory: number) {
    this.#link = link
    this.#mutex = mutex
    this.#tokenMemory = tokenMemory
  }

  /** A queue of more than a page is read page by page: who joins or leaves meanwhile may be in it, or not. */
  async inspect(key: string): Promise<LockState> {
    const first = await this.#page(key)
    if (first.size < PAGE) return { ...first.state, waiters: first.waiters }
    const waiters = new Map(first.waiters.map(waiter => [waiter.id, waiter]))
    for (let page = first; page.size === PAGE; ) {
      page = await this.#page(key, page.last)
      for (const waiter of page.waiters) if (!waiters.has(waiter.id)) waiters.set(waiter.id, waiter)
    }
    return { ...first.state, waiters: [...waiters.values()].map((waiter, i) => ({ ...waiter, position: i + 1 })) }
  }

  /** The lock, and the waiters that stand behind the one given, or the first. */
  async #page(key: string, behind?: QueueEntry): Promise<StatePage> {
    const args = { most: PAGE, ticket: behind?.ticket, behind: behind?.claim }
    const { values } = await this.#link.scripts.run('inspect', this.#link.keys.of(key), args)
    return decodeState(key, values)
  }

  /** As `inspect`, without reading the queue. */
  async isLocked(key: string): Promise<boolean> {
    const none = { most: undefined, ticket: undefined, behind: undefined }
    const { values } = await this.#link.scripts.run('inspect', this.#link.keys.of(key), none)
    return decodeState(key, values).state.locked
  }

  /** Held or queued locks whose key matches the pattern; each at most once, in no order. */
  async *list(pattern: string): AsyncGenerator<LockState> {
    const matches = glob(pattern)
    const seen = new Set<string>()
    const done = new Set<string>()
    for (;;) {
      const masters = await this.#run(async redis => mastersOf(redis))
      // One that has taken over in the meantime is another one, with locks that may not have been seen.
      const master = masters.find(name => !done.has(name))
      if (master === undefined) return
      done.add(master)
      let cursor = '0'
      do {
        const page = await this.#run(redis => this.#scan(redis, master, cursor))
        if (!page) break
        cursor = page[0]
        const keys = page[1].map(name => this.#link.keys.keyOf(name)).filter(key => key !== undefined)
        const fresh = keys.filter(key => matches(key) && !seen.has(key))
        for (const key of fresh) seen.add(key)
        for (const state of await Promise.all(fresh.map(key => this.#found(key)))) {
          if (state && (state.locked || state.waiters.length > 0)) yield state
        }
      } while (cursor !== '0')
    }
  }

  /** Undefined: a key of another kind stands where its queue would be, which must not hide all locks from those who look. */
  async #found(key: string): Promise<LockState | undefined> {
    try {
      return await this.inspect(key)
    } catch (error) {
      if (error instanceof LockConnectionError && /^WRONGTYPE/.test((error.cause as Error).message)) return undefined
      throw error
    }
  }

  /** Takes the lock from the holder it has now. False: it is free. */
  async forceRelease(key: string): Promise<boolean> {
    const names = this.#link.keys.of(key)
    const args = {
      request: newHoldId(this.#link.clientId),
      inbox: this.#link.keys.inboxPrefix(names.lock),
      memory: this.#tokenMemory,
    }
    const { status } = await this.#link.scripts.run('forceRelease', names, args)
    if (status === 'unfinished') await this.#mutex.sweep(key)
    return status !== 'free'
  }

  /** A page of names of keys; undefined: this server is no master any more. */
  async #scan(redis: Redis | Cluster, master: string, cursor: string): Promise<[string, string[]] | undefined> {
    const server = isCluster(redis) ? redis.nodes().find(node => nameOf(node) === master) : redis
    if (server) return server.scan(cursor, 'MATCH', this.#link.keys.pattern, 'COUNT', PAGE, 'TYPE', 'hash')
    if (!mastersOf(redis).includes(master)) return undefined
    // It may be replaced: the table says by whom, once it has been asked for anew. Until then it is tried again.
    if (isCluster(redis)) redis.refreshSlotsCache(() => {})
    throw new Error(`${master} is out of reach`)
  }

  #run<T>(send: (redis: Redis | Cluster) => Promise<T>): Promise<T> {
    return this.#link.commands.run(send)
  }
}

function isCluster(redis: Redis | Cluster): redis is Cluster {
  return 'nodes' in redis
}

/** The names of the servers whose keys make up the whole: one, or every master of a cluster by its table of slots. */
function mastersOf(redis: Redis | Cluster): string[] {
  return isCluster(redis) ? [...new Set(redis.slots.map(([master]) => master as string))] : ['']
}

function nameOf({ options }: Redis): string {
  return `${options.host}:${options.port}`
}

/** A client in its own process. An unhandled rejection or an uncaught error in that process fails the test. */
import { expect, onTestFinished } from 'vitest'
import type { ClientOptions, LockOptions } from '../../src/index.ts'
import type { SemaphoreOptions } from '../../src/options.ts'
import type { KindName } from './kind-clients.ts'
import type { Deeds, Demand, Response } from './peer-program.ts'
import { Child } from './process.ts'
import { redisUrl } from './redis.ts'

/** The URL of a server, or the URLs of a quorum's servers. */
type Addresses = string | readonly string[]

export class Peer {
  readonly child: Child
  #asked = 0

  private constructor(source: Addresses, options: ClientOptions, kind: KindName) {
    const urls = [source].flat().join(' ')
    this.child = new Child(new URL('peer-program.ts', import.meta.url), [urls, JSON.stringify(options), kind])
    onTestFinished(() => {
      expect((this.child.messages as Response[]).filter(message => 'crash' in message)).toEqual([])
    })
  }

  /** Resolves when the client is ready. */
  static async start(
    options: ClientOptions = {},
    source: Addresses = redisUrl(),
    kind: KindName = 'mutex',
  ): Promise<Peer> {
    const peer = new Peer(source, options, kind)
    await peer.#answer(0)
    return peer
  }

  lock(key: string, options: LockOptions = {}) {
    return this.#ask('lock', key, options)
  }

  /** Takes permits of a semaphore that has `of` permits. */
  permits(key: string, of: number, options: SemaphoreOptions) {
    return this.#ask('permits', key, of, options)
  }

  /** Takes the read side of a read-write lock. */
  read(key: string, options: LockOptions = {}) {
    return this.#ask('read', key, options)
  }

  queueToRead(key: string, count: number) {
    return this.#ask('queueToRead', key, count)
  }

  queue(key: string, count: number, options: LockOptions = {}) {
    return this.#ask('queue', key, count, options)
  }

  release(id: string) {
    return this.#ask('release', id)
  }

  renew(id: string, ms: number) {
    return this.#ask('renew', id, ms)
  }

  state(id: string) {
    return this.#ask('state', id)
  }

  block(id: string, ms: number) {
    return this.#ask('block', id, ms)
  }

  ends(id: string) {
    return this.#ask('ends', id)
  }

  starve(ms: number) {
    return this.#ask('starve', ms)
  }

  jump(ms: number) {
    return this.#ask('jump', ms)
  }

  /**
   * Returns the events that the client has recorded about its holds so far. In these events, the client's process is
   * named `peer`.
   */
  history() {
    return this.#ask('history')
  }

  close() {
    return this.#ask('close')
  }

  signal(signal: NodeJS.Signals): void {
    this.child.signal(signal)
  }

  kill(): Promise<void> {
    return this.child.kill()
  }

  #ask<D extends keyof Deeds>(deed: D, ...args: Parameters<Deeds[D]>): Promise<Awaited<ReturnType<Deeds[D]>>> {
    const number = ++this.#asked
    this.child.send({ number, deed, args } satisfies Demand)
    return this.#answer(number) as Promise<Awaited<ReturnType<Deeds[D]>>>
  }

  async #answer(number: number): Promise<unknown> {
    type Answer = { number: number; result?: unknown; error?: string }
    const response = await this.child.message<Answer>(message => message.number === number)
    if (response.error !== undefined) throw new Error(response.error)
    return response.result
  }
}

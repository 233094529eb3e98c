/** A lock client in a process of its own, which the test drives. */
import type { ClientOptions, LockOptions } from '../../../src/index.ts'
import { Child } from '../../kit/process.ts'
import { redisUrl } from '../../kit/redis.ts'
import type { Deeds, Demand, Response } from './agent-program.ts'

interface AgentOptions extends ClientOptions {
  url?: string
  /** ms by which the process's time of day is off. */
  clockOffset?: number
}

export class Agent {
  readonly child: Child
  #asked = 0

  constructor({ url = redisUrl(), clockOffset = 0, ...options }: AgentOptions = {}) {
    const program = new URL('agent-program.ts', import.meta.url)
    this.child = new Child(program, [url, JSON.stringify(options), String(clockOffset)])
  }

  lock(key: string, options: LockOptions = {}) {
    return this.#ask('lock', key, options)
  }

  queue(key: string, count: number, options: LockOptions = {}) {
    return this.#ask('queue', key, count, options)
  }

  release(id: string) {
    return this.#ask('release', id)
  }

  state(id: string) {
    return this.#ask('state', id)
  }

  block(id: string, ms: number) {
    return this.#ask('block', id, ms)
  }

  timeOfDay() {
    return this.#ask('timeOfDay')
  }

  setClock(offset: number) {
    return this.#ask('setClock', offset)
  }

  kill(): Promise<void> {
    return this.child.kill()
  }

  async #ask<D extends keyof Deeds>(deed: D, ...args: Parameters<Deeds[D]>): Promise<Awaited<ReturnType<Deeds[D]>>> {
    const number = ++this.#asked
    this.child.send({ number, deed, args } satisfies Demand)
    const response = await this.child.message<Response>(message => message.number === number)
    if ('error' in response) throw new Error(response.error)
    return response.result as Awaited<ReturnType<Deeds[D]>>
  }
}

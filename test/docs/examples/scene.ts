/**
 * Helpers for the tests of long-running examples. Each test file has its own Redis, because examples use fixed keys.
 * Started programs are killed after the file's tests.
 */
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect } from 'vitest'
import { findServerSource, type RunningServer } from '../../../local-redis/index.ts'
import { LockClient } from '../../../src/index.ts'
import { example, Running } from '../../kit/program.ts'
import { eventually } from '../../kit/time.ts'

export class Scene {
  readonly #started: Running[] = []
  #server: RunningServer | undefined
  #redis: Redis | undefined
  #locks: LockClient | undefined

  /** Starts a Redis before the tests of the file, and stops it after them. Create a scene at the top of a test file. */
  constructor() {
    beforeAll(async () => {
      this.#server = await (await findServerSource()).start({ args: [] })
      this.#redis = new Redis(this.url)
      this.#locks = new LockClient(this.url, { label: 'the test' })
    })
    afterAll(async () => {
      await Promise.all(this.#started.map(program => program.end('SIGKILL')))
      await this.#locks?.close()
      this.#redis?.disconnect()
      await this.#server?.stop()
    })
  }

  get url(): string {
    return this.#server!.url
  }

  get redis(): Redis {
    return this.#redis!
  }

  /** The test's own client. It competes with the example for the example's locks. */
  get locks(): LockClient {
    return this.#locks!
  }

  /** Starts an example that keeps running. It is killed after the file's tests if it still runs. */
  start(name: string, env: Record<string, string> = {}): Running {
    const program = new Running(example(name), { REDIS_URL: this.url, ...env })
    this.#started.push(program)
    return program
  }

  /** Waits until the lock's fair queue has this many waiters. */
  async waiters(key: string, count: number): Promise<void> {
    await eventually(async () => (await this.locks.inspect(key)).waiters.length === count)
  }

  /** Expects that no lock is held, and that no caller waits. */
  async expectNothingLeft(): Promise<void> {
    for await (const state of this.locks.list()) expect(state).toBeUndefined()
  }
}

/** Returns the address of a started web server. */
export async function listening(server: Running): Promise<string> {
  return (await server.line(/^listening on /)).slice('listening on '.length)
}

export interface Answer {
  readonly status: number
  readonly retryAfter: string | null
  readonly body: Record<string, unknown>
}

export async function post(url: string, body: unknown, signal?: AbortSignal): Promise<Answer> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  })
  const { status, headers } = response
  return { status, retryAfter: headers.get('Retry-After'), body: (await response.json()) as Record<string, unknown> }
}

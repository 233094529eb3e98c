/**
 * A fake of the part of an ioredis client that `Connection` uses. There is no server: the test decides when the fake
 * connects, breaks and answers.
 */
import { EventEmitter } from 'node:events'
import type { Redis } from 'ioredis'
import { test as base } from 'vitest'
import { Connection } from '../../src/redis/connection.ts'
import type { Request } from '../../src/redis/request.ts'
import { FakeClock } from './fake-clock.ts'
import { Calls } from './fake-kind.ts'
import { settled } from './promises.ts'

export const OUTAGE = 15_000

export class FakeRedis extends EventEmitter {
  status = 'wait'
  readonly options = {}
  /** The times at which the client has tried to connect. */
  readonly connects: number[] = []
  readonly asked = new Calls<[], string>()
  readonly #clock: FakeClock

  constructor(clock: FakeClock) {
    super()
    this.#clock = clock
  }

  connect(): Promise<void> {
    this.status = 'connecting'
    this.connects.push(this.#clock.now())
    return Promise.resolve()
  }

  disconnect(): void {
    this.break()
  }

  ask(): Promise<string> {
    return this.asked.make()
  }

  async ready(): Promise<void> {
    this.status = 'ready'
    this.emit('ready')
    await settled()
  }

  /**
   * Breaks the connection, or makes an attempt to connect fail. Rejects pending requests, then emits `end`, as ioredis
   * does.
   */
  break(error?: Error): void {
    this.status = 'end'
    if (error) this.emit('error', error)
    for (const call of this.asked.open) call.fail(new Error('Connection is closed.'))
    this.emit('end')
  }
}

/** A `Connection` to a fake Redis, with a record of what the connection reported. */
export class Connected {
  readonly clock = new FakeClock()
  readonly redis = new FakeRedis(this.clock)
  readonly told: string[] = []
  readonly connection = new Connection(this.redis as unknown as Redis, this.clock, OUTAGE, {
    onUp: () => this.told.push('up'),
    onDown: error => this.told.push(`down: ${error.message}`),
  })

  static async up(): Promise<Connected> {
    const at = new Connected()
    at.connection.uplink.open()
    await at.redis.ready()
    return at
  }

  ask(how: Partial<Request<unknown>> = {}) {
    return this.connection.ask({
      send: redis => (redis as unknown as FakeRedis).ask(),
      read: ({ reply, sent, repeated }) => ({ reply, sent, repeated }),
      ...how,
    })
  }
}

/** Declares a test, which receives a connection that is up. */
export const test = base.extend('at', () => Connected.up())

/** Returns an error as the server sends it. */
export function replyError(message: string): Error {
  return Object.assign(new Error(message), { name: 'ReplyError' })
}

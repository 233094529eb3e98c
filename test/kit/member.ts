/**
 * One session of the lock client (src/session.ts) that uses several kinds of locks, and helpers with which a test
 * observes the session. The kinds `twin` and `flag` exist only in tests.
 */
import { EventEmitter } from 'eventemitter3'
import { onTestFinished } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { connect } from '../../src/connect.ts'
import type { Lease } from '../../src/key/lease.ts'
import { mutex } from '../../src/kinds/mutex/mutex.ts'
import type { LockOptions } from '../../src/options.ts'
import type { RedisSource } from '../../src/redis/clients.ts'
import type { LinkListener } from '../../src/redis/link.ts'
import { Session } from '../../src/session.ts'
import { callTermsOf, settingsOf } from '../../src/settings.ts'
import { flag } from './flag.ts'

/** A second kind of mutex. It differs from the first kind only in the names of its keys and channels. */
export const twin = { ...mutex, name: 'twin' }

/** A lock client's session. Its lease and waiterTtl are so long that no timer fires before a test is over. */
export class Member {
  readonly session: Session
  readonly errors: unknown[] = []
  /** The number of calls so far that were refused and then waited. */
  parked = 0
  readonly #settings = settingsOf({ lease: 120_000, waiterTtl: 360_000 })

  constructor(redis: RedisSource | readonly RedisSource[]) {
    const observer = {
      listening: false,
      tell: (what: string, ...about: unknown[]) => {
        if (what === 'error') this.errors.push(about[0])
        if (what === 'waiting') this.parked += 1
      },
    }
    const settings = this.#settings
    const backend = (listener: LinkListener) => connect(redis, settings, new EventEmitter(), listener)
    this.session = new Session(backend, settings, systemClock, observer)
    onTestFinished(() => this.session.close(0))
  }

  async lock(kind: typeof mutex | typeof flag, key: string, options: LockOptions = {}): Promise<Lease> {
    const request = callTermsOf(options, this.#settings)
    const locks = this.session.locks(kind as typeof mutex)
    const lease = await locks.begin(key, undefined, request, request.timeout === 0, false)
    if (!lease) throw new Error('somebody else has it')
    return lease
  }

  /** Reports for the mutex, the twin and the flag of this key, in this order, whether the lock is taken. */
  async taken(key: string): Promise<boolean[]> {
    const states = [mutex, twin].map(kind => this.session.locks(kind).kind.inspection.inspect(key))
    const { up } = await this.session.locks(flag).kind.inspection.inspect(key)
    return [...(await Promise.all(states)).map(({ locked }) => locked), up]
  }
}

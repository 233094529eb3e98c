/** One call at a time: asks for a lock, works in its section under the eyes of the witnesses, releases, records. */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Lease,
  type LockClient,
  LockConnectionError,
  LockError,
  LockLostError,
  LockTimeoutError,
} from '../../../src/index.ts'
import type { Random } from '../../kit/random.ts'
import { RecordedClient } from '../recorded.ts'
import type { Recorder } from '../recorder.ts'
import type { Witnesses } from '../witnesses.ts'
import { type Choice, choose, chooseAgain } from './choices.ts'

export class Caller {
  readonly #worker: string
  readonly #locks: LockClient
  readonly #witnesses: Witnesses
  readonly #recorder: Recorder
  readonly #draining: AbortSignal
  readonly #recorded: RecordedClient

  constructor(worker: string, locks: LockClient, witnesses: Witnesses, recorder: Recorder, draining: AbortSignal) {
    this.#worker = worker
    this.#locks = locks
    this.#witnesses = witnesses
    this.#recorder = recorder
    this.#draining = draining
    this.#recorded = new RecordedClient(worker, locks, recorder)
  }

  /** One choice from its beginning to its end. Returns how long to pause after it, in ms. */
  async once(random: Random, keys: readonly string[]): Promise<number> {
    const choice = choose(random, keys)
    // A name of its own lets the checker find the call in a queue; without one its owner is the id that it gets.
    const named = choice.twice || random.chance(choice.mode === 'fair' ? 0.8 : 0.3)
    const owner = named ? `${this.#worker}.${this.#recorded.attempts + 1}` : undefined
    const [lease, other] = await Promise.all([
      this.#attempt(choice, owner),
      choice.twice ? this.#attempt(choice, owner) : undefined,
    ])
    if (lease) await this.#section(lease, choice)
    if (other) await this.#release(other)
    return choice.pause
  }

  /** For a caller that loops at one lock. False: it was not granted. */
  async again(key: string): Promise<boolean> {
    const choice = chooseAgain(key)
    const lease = await this.#attempt(choice, undefined)
    if (lease) await this.#section(lease, choice)
    return lease !== undefined
  }

  async #attempt(choice: Choice, owner: string | undefined): Promise<Lease | undefined> {
    const { key, mode, patience, abortAfter } = choice
    const attempt = this.#recorded.attempt()
    const abort = new AbortController()
    const aborts = abortAfter !== undefined
    const options = { ...choice.options, ...(owner && { owner }), ...(aborts && { signal: abort.signal }) }
    const terms = {
      ...(owner && { owner }),
      ...(patience !== undefined && { patience }),
      ...(aborts && { abort: abortAfter }),
    }
    this.#recorder.record('request', { worker: this.#worker, attempt, key, mode, ...terms })
    const timer = aborts ? setTimeout(() => abort.abort(), abortAfter) : undefined
    try {
      const lease = choice.try ? await this.#locks.tryLock(key, options) : await this.#locks.lock(key, options)
      if (lease) this.#recorded.granted(lease, attempt)
      else this.#recorded.end(attempt, patience === undefined || mode === 'once' ? 'refused' : 'timeout')
      return lease ?? undefined
    } catch (error) {
      if (error instanceof LockTimeoutError) this.#recorded.end(attempt, 'timeout')
      else if (abort.signal.aborted && error === abort.signal.reason) this.#recorded.end(attempt, 'aborted')
      // A tryLock does not say that somebody else has the lock, if on a busy machine nothing was answered in its time.
      else if (choice.try && unanswered(error)) this.#recorded.end(attempt, 'timeout')
      else this.#recorded.end(attempt, 'failed', this.#known(error))
      return undefined
    } finally {
      clearTimeout(timer)
    }
  }

  async #section(lease: Lease, { hold, renew, reenter }: Choice): Promise<void> {
    const entered = this.#witnesses.enter(lease)
    await this.#witnesses.write(lease)
    if (renew) await lease.renew().catch(error => this.#known(error))
    if (reenter) await this.#again(lease)
    await sleep(hold, undefined, { signal: this.#draining }).catch(() => {})
    if (entered) this.#witnesses.leave(lease)
    await this.#release(lease)
  }

  /** The same owner, the same lock, inside. Once the lease has ended this is an ordinary attempt. */
  async #again({ key, owner }: Lease): Promise<void> {
    const attempt = this.#recorded.attempt()
    this.#recorder.record('request', { worker: this.#worker, attempt, key, mode: 'once', owner })
    try {
      const inner = await this.#locks.tryLock(key, { owner, lease: 400 })
      if (!inner) return this.#recorded.end(attempt, 'refused')
      this.#recorded.granted(inner, attempt)
      await this.#release(inner)
    } catch (error) {
      this.#recorded.end(attempt, 'failed', this.#known(error))
    }
  }

  async #release(lease: Lease): Promise<void> {
    await this.#recorded.release(lease).catch(error => this.#known(error))
  }

  /** The text of an error that may happen; any other is recorded as one that must not. */
  #known(error: unknown): string {
    if (error instanceof LockLostError) return error.code
    if (error instanceof LockError && error.code === 'ERR_LOCK_CONNECTION') return error.message
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    this.#recorder.record('crash', { worker: this.#worker, error: `a call rejected with ${text}` })
    return text
  }
}

function unanswered(error: unknown): boolean {
  return error instanceof LockConnectionError && error.message.startsWith('Redis did not answer for')
}

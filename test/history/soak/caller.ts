/**
 * A caller makes one call at a time. It requests one or several locks, holds them while the witnesses (witnesses.ts)
 * check exclusion, releases them, and records each of these steps.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Lease,
  type LockClient,
  LockConnectionError,
  LockError,
  LockLostError,
  type LockOptions,
  LockTimeoutError,
} from '../../../src/index.ts'
import type { Random } from '../../kit/random.ts'
import type { EventOf } from '../events.ts'
import { RecordedClient } from '../recorded.ts'
import type { Recorder } from '../recorder.ts'
import type { Wants } from '../wants.ts'
import type { Witnesses } from '../witnesses.ts'
import { type Choice, choose, chooseAgain, type Part } from './choices.ts'
import { lockFor, optionsFor } from './lock-for.ts'
import type { Terms, Times } from './terms.ts'

/** A call under way. `parts` are the requested locks, each with its attempt in the history. */
interface Asked {
  readonly parts: readonly (Part & { readonly attempt: string })[]
  readonly choice: Choice
  readonly abort: AbortController
}

/** The lease that an owner requests when it takes a lock again, in ms. */
const AGAIN = 400

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

  /** Makes one random call, and later releases its locks. Returns the pause before the next call, in ms. */
  async once(random: Random, terms: Terms): Promise<number> {
    const choice = choose(random, terms)
    // If the call sets an owner, the checker can find this call in a snapshot of the queue. Otherwise the client
    // generates the owner, and the recorded request does not contain it.
    const named = choice.twice || choice.reenter || random.chance(choice.mode === 'fair' ? 0.8 : 0.3)
    const owner = named ? `${this.#worker}.${this.#recorded.attempts + 1}` : undefined
    const [leases, other] = await Promise.all([
      this.#attempt(choice, owner),
      choice.twice ? this.#attempt(choice, owner) : undefined,
    ])
    if (leases) await this.#section(leases, choice)
    if (other) await this.#releaseAll(other)
    return choice.pause
  }

  /**
   * Makes the next call of a caller that requests the same lock again and again. Returns false if the lock was not
   * granted.
   */
  async again(key: string, times: Times): Promise<boolean> {
    const choice = chooseAgain(key, times)
    const leases = await this.#attempt(choice, undefined)
    if (leases) await this.#section(leases, choice)
    return leases !== undefined
  }

  /** Requests all locks of the choice. Returns their leases in the order of the choice. */
  async #attempt(choice: Choice, owner: string | undefined): Promise<Lease[] | undefined> {
    const { mode, patience, abortAfter, besides, options, lease } = choice
    const aborts = abortAfter !== undefined
    const parts = [choice, ...besides].map(({ key, wants }) => ({ key, wants, attempt: this.#recorded.attempt() }))
    const terms = {
      lease,
      ...(owner && { owner }),
      ...(patience !== undefined && { patience }),
      ...(aborts && { abort: abortAfter }),
      ...(options.headStart && { headStart: options.headStart }),
      ...(options.minHold && { minHold: options.minHold }),
      ...(besides.length > 0 && { part: parts[0]!.attempt }),
    }
    for (const { key, wants, attempt } of parts) {
      this.#recorder.record('request', { worker: this.#worker, attempt, key, mode, ...(wants && { wants }), ...terms })
    }
    const abort = new AbortController()
    const asked = { parts, choice, abort }
    const timer = aborts ? setTimeout(() => abort.abort(), abortAfter) : undefined
    try {
      const leases = await this.#ask(asked, {
        ...options,
        ...(owner && { owner }),
        ...(aborts && { signal: abort.signal }),
      })
      const refused = patience === undefined || mode === 'once' ? 'refused' : 'timeout'
      for (const { key, attempt } of parts) {
        const granted = leases?.find(each => each.key === key)
        if (granted) this.#recorded.granted(granted, attempt)
        else this.#recorded.end(attempt, refused)
      }
      return leases && parts.map(({ key }) => leases.find(each => each.key === key) as Lease)
    } catch (error) {
      const { how, text } = this.#endOf(error, asked)
      for (const { attempt } of parts) this.#recorded.end(attempt, how, text)
      return undefined
    } finally {
      clearTimeout(timer)
    }
  }

  async #ask({ parts, choice }: Asked, options: LockOptions): Promise<readonly Lease[] | undefined> {
    const locks = parts.map(({ key, wants }) => lockFor(this.#locks, key, wants))
    if (parts.length > 1) {
      const all = this.#locks.all(locks)
      const lease = choice.try ? await all.tryLock(options) : await all.lock(options)
      return lease?.leases
    }
    const [lock] = locks
    const own = optionsFor(options, choice.wants)
    const lease = choice.try ? await lock!.tryLock(own) : await lock!.lock(own)
    return lease ? [lease] : undefined
  }

  #endOf(error: unknown, { choice, abort, parts }: Asked): { how: EventOf<'end'>['how']; text?: string } {
    if (error instanceof LockTimeoutError) return { how: 'timeout' }
    if (abort.signal.aborted && error === abort.signal.reason) return { how: 'aborted' }
    if (isDeadlock(error)) return { how: 'deadlock' }
    // One of several locks was lost while the call waited for another one.
    if (parts.length > 1 && error instanceof LockLostError) return { how: 'lost' }
    // On a busy machine, a tryLock may get no reply in time. Then it rejects instead of reporting that the lock is
    // held.
    if (choice.try && unanswered(error)) return { how: 'timeout' }
    return { how: 'failed', text: this.#known(error) }
  }

  async #section(leases: readonly Lease[], choice: Choice): Promise<void> {
    const { hold, renew, reenter, besides } = choice
    const wanted = [choice, ...besides].map(({ wants }) => wants)
    for (const [i, lease] of leases.entries()) this.#witnesses.enter(lease, wanted[i])
    await Promise.all(leases.map((lease, i) => this.#witnesses.write(lease, wanted[i])))
    const [lease] = leases as [Lease]
    if (renew) await lease.renew().catch(error => this.#known(error))
    const inner = reenter && (await this.#enterAgain(lease, reenter === 'same' ? undefined : reenter))
    await this.#work(hold)
    for (const each of leases) this.#witnesses.leave(each)
    await this.#releaseAll(leases)
    // `inner` is a re-entry that should outlast the other holds. So it is kept for a while after their release.
    if (!inner) return
    await this.#work(hold)
    await this.#release(inner)
  }

  /**
   * Takes the same lock again, as the same owner, inside its hold. If the hold has ended, the call is an ordinary
   * attempt. A new lease to read is returned, so that it can outlast the first lease. Any other is released here.
   */
  async #enterAgain({ key, owner }: Lease, wants: Wants | undefined): Promise<Lease | undefined> {
    const attempt = this.#recorded.attempt()
    this.#recorder.record('request', {
      worker: this.#worker,
      attempt,
      key,
      mode: 'once',
      owner,
      ...(wants && { wants }),
    })
    try {
      const inner = await lockFor(this.#locks, key, wants).tryLock({ owner, lease: AGAIN })
      if (!inner) {
        this.#recorded.end(attempt, 'refused')
        return undefined
      }
      this.#recorded.granted(inner, attempt)
      if (wants === 'read') return inner
      await this.#release(inner)
    } catch (error) {
      if (isDeadlock(error)) this.#recorded.end(attempt, 'deadlock')
      else this.#recorded.end(attempt, 'failed', this.#known(error))
    }
    return undefined
  }

  async #work(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#draining }).catch(() => {})
  }

  async #releaseAll(leases: readonly Lease[]): Promise<void> {
    await Promise.all(leases.map(lease => this.#release(lease)))
  }

  async #release(lease: Lease): Promise<void> {
    await this.#recorded.release(lease).catch(error => this.#known(error))
  }

  /** Returns the text of an error. Records an unexpected error as a crash. */
  #known(error: unknown): string {
    if (error instanceof LockLostError) return error.code
    if (error instanceof LockError && error.code === 'ERR_LOCK_CONNECTION') return error.message
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    this.#recorder.record('crash', { worker: this.#worker, error: `a call rejected with ${text}` })
    return text
  }
}

function isDeadlock(error: unknown): boolean {
  return error instanceof LockError && error.code === 'ERR_LOCK_DEADLOCK'
}

function unanswered(error: unknown): boolean {
  return error instanceof LockConnectionError && error.message.includes('Redis did not answer for')
}

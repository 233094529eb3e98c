/**
 * Finds the owner of a call: from its option `owner`, from `runAs`, or from an enclosing `using` of the same key.
 *
 * Each `using` and each `runAs` adds a frame with an owner to the async context of its function. The frames form a
 * chain, innermost first. The owner in a frame of `using` applies only to calls on the key of that `using`. So two
 * branches that run in parallel inside a `using` both re-enter its lock, but exclude each other on all other keys. The
 * owner in a frame of `runAs` applies to calls on every key. Each client has frames of its own, so copies of this
 * package share no state.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Lease } from './key/lease.ts'

interface Frame {
  readonly owner: string
  /** The lease that the call of `using` holds. Undefined: the frame belongs to a call of `runAs`. */
  readonly lease: Lease | undefined
  /** The kind of the lease's lock. It is needed because the same key means a different lock in each kind. */
  readonly kind?: string
  readonly outer: Frame | undefined
}

export class Reentry {
  readonly #frames = new AsyncLocalStorage<Frame>()

  /** Returns the owner that the async context has for a call on this kind and key, or undefined if it has none. */
  ownerOf(kind: string, key: string): string | undefined {
    for (let frame = this.#frames.getStore(); frame; frame = frame.outer) {
      const { lease, owner } = frame
      if (!lease || (lease.key === key && frame.kind === kind && lease.lasts)) return owner
    }
    return undefined
  }

  runAs<T>(owner: string, fn: () => T): T {
    return this.#frames.run({ owner, lease: undefined, outer: this.#frames.getStore() }, fn)
  }

  /** Runs `fn` in a context in which calls on the lease's lock re-enter, as long as the hold lasts. */
  within<T>(kind: string, lease: Lease, fn: () => T): T {
    return this.#frames.run({ owner: lease.owner, lease, kind, outer: this.#frames.getStore() }, fn)
  }
}

/**
 * Finds the owner of a call: from its option, from `runAs`, or from an enclosing `using` of the same key.
 *
 * The async context carries a chain of frames, innermost first. A frame of `using` gives its owner only to calls on its
 * own key. So if two branches run in parallel inside a `using`, they exclude each other on every other key. A frame of
 * `runAs` gives its owner to calls on every key. Each client has frames of its own, so copies of this package share no
 * state.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Lease } from './lease/lease.ts'

interface Frame {
  readonly owner: string
  /** The lease of a `using`; undefined if this is a frame of `runAs`. */
  readonly lease: Lease | undefined
  /** The kind of the lease's lock. It is needed because the same key means a different lock in each kind. */
  readonly kind?: string
  readonly outer: Frame | undefined
}

export class Reentry {
  readonly #frames = new AsyncLocalStorage<Frame>()

  /** Returns the owner that the async context gives to a call on this kind and key; undefined: none. */
  ownerOf(kind: string, key: string): string | undefined {
    for (let frame = this.#frames.getStore(); frame; frame = frame.outer) {
      const { lease, owner } = frame
      if (!lease || (lease.key === key && frame.kind === kind && lease.held)) return owner
    }
    return undefined
  }

  runAs<T>(owner: string, fn: () => T): T {
    return this.#frames.run({ owner, lease: undefined, outer: this.#frames.getStore() }, fn)
  }

  /** Runs `fn` in a context in which calls on the lease's lock re-enter, as long as the lease is held. */
  within<T>(kind: string, lease: Lease, fn: () => T): T {
    return this.#frames.run({ owner: lease.owner, lease, kind, outer: this.#frames.getStore() }, fn)
  }
}

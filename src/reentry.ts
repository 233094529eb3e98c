/**
 * Who asks: the owner of a call, from its option, from `runAs`, or from a lock of the same key that is held around it.
 *
 * The async context carries a chain of frames, innermost first. A frame of `using` names its own key only, so that two
 * branches started in parallel inside it exclude each other on any other key; a frame of `runAs` names every key.
 * The frames are the client's own: re-entry needs no state that copies of this package would have to share.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Lease } from './lease/lease.ts'

interface Frame {
  readonly owner: string
  /** Undefined: `runAs`. */
  readonly lease: Lease | undefined
  /** That of its lock: the same key names another lock in each kind. */
  readonly kind?: string
  readonly outer: Frame | undefined
}

export class Reentry {
  readonly #frames = new AsyncLocalStorage<Frame>()

  /** The owner that the context gives to a lock of this kind and key, if it does. */
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

  /** Runs `fn` inside the lease of a lock of this kind: locks of its key re-enter, as long as it is held. */
  within<T>(kind: string, lease: Lease, fn: () => T): T {
    return this.#frames.run({ owner: lease.owner, lease, kind, outer: this.#frames.getStore() }, fn)
  }
}

/**
 * Publishes each event to the client's listeners and on `node:diagnostics_channel`. If nobody listens to an event, the
 * event object is not made, so the event costs almost nothing.
 */
import { type Channel, channel } from 'node:diagnostics_channel'
import type { EventEmitter } from 'eventemitter3'
import type { ClientEventMap, ClientEvents } from '../events.ts'
import type { EventArguments, Observer } from '../kind-client.ts'

/** For each event, a function that makes the event object from the data given to `Announcer.tell`. */
const events: { readonly [E in keyof ClientEvents]: (...about: EventArguments[E]) => ClientEvents[E] } = {
  waiting: (waiter, locks) => {
    const { claim, refusal } = waiter
    const holder = locks.holder(waiter)
    return {
      key: claim.key,
      owner: claim.owner,
      ...(refusal?.position && { position: refusal.position }),
      ...(refusal?.expected !== undefined && { expected: refusal.expected }),
      ...(holder && { holder }),
    }
  },
  acquired: ({ key, owner, token: fencingToken, waited, via }) => ({ key, owner, fencingToken, waited, via }),
  renewed: ({ key, token: fencingToken }) => ({ key, fencingToken }),
  released: ({ key, token: fencingToken }, held) => ({ key, fencingToken, held }),
  lost: ({ key, token: fencingToken }, error) => ({ key, fencingToken, error }),
  disconnected: error => ({ error }),
  reconnected: () => ({}),
  error: error => ({ error }),
}
const channels = Object.fromEntries(Object.keys(events).map(name => [name, channel(`redis-baton:${name}`)])) as {
  readonly [E in keyof ClientEvents]: Channel
}

export class Announcer implements Observer {
  readonly #emitter: EventEmitter<ClientEventMap>

  constructor(emitter: EventEmitter<ClientEventMap>) {
    this.#emitter = emitter
  }

  get listening(): boolean {
    for (const name of ['waiting', 'acquired', 'released'] as const) {
      if (channels[name].hasSubscribers || this.#emitter.listenerCount(name) > 0) return true
    }
    return false
  }

  tell<E extends keyof ClientEvents>(name: E, ...about: EventArguments[E]): void {
    const diagnostics = channels[name]
    const published = diagnostics.hasSubscribers
    const heard = this.#emitter.listenerCount(name) > 0
    if (!published && !heard) return
    const make: (...about: EventArguments[E]) => ClientEvents[E] = events[name]
    const event = make(...about)
    if (published) diagnostics.publish(event)
    if (!heard) return
    try {
      const emit = this.#emitter.emit as (name: E, event: ClientEvents[E]) => boolean
      emit.call(this.#emitter, name, event)
    } catch (error) {
      // If a listener throws, the lock must continue to work. So the error is thrown later, as an uncaught exception.
      queueMicrotask(() => {
        throw error
      })
    }
  }
}

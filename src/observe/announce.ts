/**
 * Tells an event to the client's listeners and to the diagnostics channel of its name. Costs nothing worth measuring
 * while nobody listens: the event is only made when somebody does.
 */
import { channel } from 'node:diagnostics_channel'
import type { EventEmitter } from 'eventemitter3'
import type { ClientEventMap, ClientEvents } from '../events.ts'

const names = ['waiting', 'acquired', 'renewed', 'released', 'lost', 'disconnected', 'reconnected', 'error'] as const
const channels = new Map(names.map(name => [name, channel(`redis-baton:${name}`)]))

export class Announcer {
  readonly #emitter: EventEmitter<ClientEventMap>

  constructor(emitter: EventEmitter<ClientEventMap>) {
    this.#emitter = emitter
  }

  tell<E extends keyof ClientEvents>(name: E, make: () => ClientEvents[E]): void {
    const diagnostics = channels.get(name)
    const published = diagnostics?.hasSubscribers
    const heard = this.#emitter.listenerCount(name) > 0
    if (!published && !heard) return
    const event = make()
    if (published) diagnostics?.publish(event)
    if (!heard) return
    try {
      const emit = this.#emitter.emit as (name: E, event: ClientEvents[E]) => boolean
      emit.call(this.#emitter, name, event)
    } catch (error) {
      // A listener's own mistake must not break the lock under it; it surfaces as an uncaught exception of its own.
      queueMicrotask(() => {
        throw error
      })
    }
  }
}

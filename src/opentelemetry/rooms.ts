/**
 * A `Room` keeps data for the calls of this client that wait for one key. It exists only while there are such calls. So
 * the memory depends on the number of waiting calls, not on the number of keys.
 */
import type { Link } from '@opentelemetry/api'
import type { ClientEvents } from '../events.ts'

type WaitingEvent = ClientEvents['waiting']

/** A hold of this client that ended while another call waited for the same key. */
export interface Ending {
  /** When the hold's release was called or its loss was reported, in monotonic ms. */
  readonly at: number
  /** A link to the hold's span. */
  readonly link: Link
  readonly released: boolean
}

export class Room {
  waiting = 0
  /**
   * For each kind of lock, the last hold that ended while calls waited for the key. The next grant in that kind removes
   * the entry.
   */
  readonly endings = new Map<string, Ending>()
  readonly #events = new Map<string, WaitingEvent>()

  /**
   * Stores a `waiting` event, which says for which holder the owner of a call waits. There is at most one such event for
   * each id with which a call asks. If a call gives up, its event stays in the room, because `Rooms.leave` does not say which owner has given
   * up. So if there are more events than waiting calls, the oldest events are dropped.
   */
  note(event: WaitingEvent): void {
    this.#events.delete(event.owner)
    this.#events.set(event.owner, event)
    for (const owner of this.#events.keys()) {
      if (this.#events.size <= this.waiting) break
      this.#events.delete(owner)
    }
  }

  /** Removes and returns the `waiting` event of `owner`. */
  take(owner: string): WaitingEvent | undefined {
    const event = this.#events.get(owner)
    this.#events.delete(owner)
    return event
  }
}

export class Rooms {
  readonly #rooms = new Map<string, Room>()

  /** Returns the room of the key; undefined if no call waits for the key. */
  find(key: string): Room | undefined {
    return this.#rooms.get(key)
  }

  enter(key: string): Room {
    let room = this.#rooms.get(key)
    if (!room) {
      room = new Room()
      this.#rooms.set(key, room)
    }
    room.waiting += 1
    return room
  }

  leave(key: string, room: Room): void {
    room.waiting -= 1
    if (room.waiting === 0) this.#rooms.delete(key)
  }
}

/**
 * What is remembered of a key while calls of this client wait for it, and not a moment longer: so it is bounded by the
 * calls that are under way, whatever the number of keys.
 */
import type { Link } from '@opentelemetry/api'
import type { ClientEvents } from '../events.ts'

type Told = ClientEvents['waiting']

/** A hold that is ending while somebody waits. */
export interface Ending {
  /** When its release was called, or its loss was told, ms. */
  readonly at: number
  /** Its span. */
  readonly link: Link
  readonly released: boolean
}

export class Room {
  waiting = 0
  /** The last hold of each kind of lock that ended here, until a grant follows it. */
  readonly endings = new Map<string, Ending>()
  readonly #told = new Map<string, Told>()

  /**
   * Notes who holds the lock that this owner waits for. A call is told so once at most, but one that gives up never says
   * which owner it was. So what is noted beyond the number of calls is about somebody who has left, most likely the oldest.
   */
  note(told: Told): void {
    this.#told.delete(told.owner)
    this.#told.set(told.owner, told)
    for (const owner of this.#told.keys()) {
      if (this.#told.size <= this.waiting) break
      this.#told.delete(owner)
    }
  }

  /** What was noted for this owner. */
  take(owner: string): Told | undefined {
    const told = this.#told.get(owner)
    this.#told.delete(owner)
    return told
  }
}

export class Rooms {
  readonly #rooms = new Map<string, Room>()

  /** The room of the key, if anybody waits for it. */
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

/**
 * A `Room` has data about one key. A room exists only while calls of this client wait for the key. So the memory
 * depends on the number of waiting calls, not on the number of keys.
 */
import type { Link } from '@opentelemetry/api'
import type { ClientEvents } from '../events.ts'

type Told = ClientEvents['waiting']

/** A hold that ends while a call waits. */
export interface Ending {
  /** When the hold's release was called or its loss was reported, in monotonic ms. */
  readonly at: number
  /** A link to the hold's span. */
  readonly link: Link
  readonly released: boolean
}

export class Room {
  waiting = 0
  /** For each kind of lock, the last hold that ended while this room existed. The next grant removes it. */
  readonly endings = new Map<string, Ending>()
  readonly #told = new Map<string, Told>()

  /**
   * Notes the holder for which `told.owner` waits. Each call makes at most one note. The note of a call that gives up
   * stays, because the room does not learn the owner of that call. So if there are more notes than waiting calls, the
   * oldest notes are dropped.
   */
  note(told: Told): void {
    this.#told.delete(told.owner)
    this.#told.set(told.owner, told)
    for (const owner of this.#told.keys()) {
      if (this.#told.size <= this.waiting) break
      this.#told.delete(owner)
    }
  }

  /** Removes and returns the note that `owner` made. */
  take(owner: string): Told | undefined {
    const told = this.#told.get(owner)
    this.#told.delete(owner)
    return told
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

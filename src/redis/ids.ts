/**
 * Makes unguessable ids. A message counts as a grant only if it names a waiter's id. So a program that may publish on a
 * channel still cannot grant a lock. Random bytes are read many at a time: one system call serves hundreds of ids.
 */
import { randomFillSync } from 'node:crypto'
import { CLIENT_ID_LENGTH } from '../kind.ts'

/** The bytes of a client's id, and of an id of a waiter after that. */
const CLIENT = (CLIENT_ID_LENGTH * 3) / 4
const LENGTH = CLIENT + 12
const pool = Buffer.allocUnsafe(LENGTH * 512)
let used = pool.length

/** Returns the place in the pool of so many bytes that were not used before. */
function fresh(): number {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += LENGTH
  return used - LENGTH
}

/** Returns a new id for a client. The id also names the client's inbox. */
export function newClientId(): string {
  const at = fresh()
  return pool.toString('base64url', at, at + CLIENT)
}

/** Makes the ids of one client. */
export interface Ids {
  readonly client: string
  /**
   * Returns a new id for a waiter. If the waiter is granted the lock, its hold has the same id. The id begins with the
   * client's id, and ends with 96 random bits as 16 characters.
   */
  readonly next: () => string
}

export function randomIds(): Ids {
  const client = newClientId()
  const bytes = Buffer.from(client, 'base64url')
  // The whole id is made in one step. If it were put together from two texts, each id would keep both.
  const next = () => {
    const at = fresh()
    bytes.copy(pool, at)
    return pool.toString('base64url', at, at + LENGTH)
  }
  return { client, next }
}

/**
 * Makes unguessable ids. A message counts as a grant only if it names a waiter's id. So a program that may publish on a
 * channel still cannot grant a lock. Random bytes are read many at a time: one system call serves hundreds of ids.
 */
import { randomFillSync } from 'node:crypto'
import { CLIENT_ID_LENGTH } from '../kind.ts'

const pool = Buffer.allocUnsafe(12 * 512)
let used = pool.length

/** Returns 96 random bits as 16 characters. */
function random(): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += 12
  return pool.toString('base64url', used - 12, used)
}

/** Returns a new id for a client. The id also names the client's inbox. */
export function newClientId(): string {
  return random().slice(0, CLIENT_ID_LENGTH)
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
  return { client, next: () => client + random() }
}

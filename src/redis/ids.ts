/**
 * Unguessable ids. A grant message counts only if it names a waiter's id, so the right to publish on a channel does not
 * give the right to grant a lock. Random bytes are drawn in bulk: one system call serves hundreds of ids.
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

/** Returns an id for a client, which also names its inbox. */
export function newClientId(): string {
  return random().slice(0, CLIENT_ID_LENGTH)
}

/** Returns an id for a waiter and its later hold. It begins with the client's id. */
export function newHoldId(clientId: string): string {
  return clientId + random()
}

/** Makes the ids of one client. */
export interface Ids {
  readonly client: string
  /** Returns the id of the next waiter and hold. */
  readonly next: () => string
}

export function randomIds(): Ids {
  const client = newClientId()
  return { client, next: () => newHoldId(client) }
}

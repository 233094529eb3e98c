/**
 * Names nobody can guess. A grant message is believed only if it names a waiter's id, so the right to publish on a
 * channel is not the right to grant a lock. Random bytes are drawn in bulk: one system call serves hundreds of ids.
 */
import { randomFillSync } from 'node:crypto'
import { CLIENT_ID_LENGTH } from '../kind.ts'

const pool = Buffer.allocUnsafe(12 * 512)
let used = pool.length

/** 96 random bits as 16 characters. */
function random(): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += 12
  return pool.toString('base64url', used - 12, used)
}

/** The name of a client's inbox. */
export function newClientId(): string {
  return random().slice(0, CLIENT_ID_LENGTH)
}

/** The id of a hold, and of the waiter before it: begins with its client's inbox. */
export function newHoldId(clientId: string): string {
  return clientId + random()
}

/** The names that one client gives. */
export interface Ids {
  readonly client: string
  /** The name of the next hold. */
  readonly next: () => string
}

export function randomIds(): Ids {
  const client = newClientId()
  return { client, next: () => newHoldId(client) }
}

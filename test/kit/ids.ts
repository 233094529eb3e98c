/** Makes ids of holds for a client whose own id is given. */
import { randomBytes } from 'node:crypto'

/** Returns an id as a client with this id makes them: with 16 random characters after the client's id. */
export function newHoldId(clientId: string): string {
  return clientId + randomBytes(12).toString('base64url')
}

/** Takes a lock away at the page's request. */
import { LockArgumentError, LockConnectionError } from '../../src/index.ts'
import type { Connected } from '../connection.ts'
import { heldBy, nameOf } from '../description.ts'
import { lockOf } from '../kinds.ts'
import { printable } from '../printable.ts'
import { showTime } from '../times.ts'
import type { ReleaseAnswer, ReleaseRequest } from './page/messages.ts'

const gone = 'Nothing was released: that holder no longer holds the lock.'

/**
 * Takes the lock from the holder that the page has shown, and from no other holder. `log` receives a line for the
 * operator of this program.
 */
export async function releaseShown(
  { locks }: Connected,
  { key, kind, id }: ReleaseRequest,
  log: (line: string) => void,
): Promise<ReleaseAnswer> {
  try {
    const lock = lockOf(locks, key, kind ?? 'mutex')
    const state = await lock.inspect()
    if (!state.locked) return { released: false, said: 'The lock was already free.' }
    const holder = state.holders.find(each => each.id === id)
    if (!holder) return { released: false, said: `${gone} The lock is now ${printable(heldBy(state))}.` }
    if (!(await locks.forceRelease(lock, id))) return { released: false, said: gone }
    const who = printable(`${nameOf(holder)}, for ${showTime(holder.heldFor)}`)
    log(`the lock ${printable(key)} was released; it was held by ${who}`)
    return { released: true, said: `The lock was released. It was held by ${who}.` }
  } catch (error) {
    if (!(error instanceof LockConnectionError || error instanceof LockArgumentError)) throw error
    return { released: false, said: `The release failed: ${printable(error.message)}` }
  }
}

/** Taking a lock away, as the page asks for it. */
import { LockArgumentError, LockConnectionError } from '../../src/index.ts'
import type { Connected } from '../connection.ts'
import { holderOf } from '../description.ts'
import { printable } from '../printable.ts'
import type { ReleaseAnswer, ReleaseRequest } from './page/messages.ts'

/**
 * Takes the lock, if its holder is still the one that the page has shown. `log`: what was done, for whoever looks after
 * this program. A call takes the lock from whom it finds; so a change of holders just then remains possible.
 */
export async function releaseShown(
  { locks }: Connected,
  { key, token }: ReleaseRequest,
  log: (line: string) => void,
): Promise<ReleaseAnswer> {
  try {
    const state = await locks.inspect(key)
    if (!state.locked) return { released: false, said: 'It was free already.' }
    const holder = printable(holderOf(state))
    if (state.fencingToken !== token) {
      return { released: false, said: `Nothing was released: it has passed on, and is held by ${holder}.` }
    }
    if (!(await locks.forceRelease(key))) return { released: false, said: 'It was free already.' }
    log(`${printable(key)} is released; it was held by ${holder}`)
    return { released: true, said: `Released. It was held by ${holder}.` }
  } catch (error) {
    if (!(error instanceof LockConnectionError || error instanceof LockArgumentError)) throw error
    return { released: false, said: `That failed: ${printable(error.message)}` }
  }
}

/**
 * Messages, on channels to which lua/ publishes. Every message is only a hint (key/key.ts).
 *
 *   inbox    "handoff|expiry <id> <token> <lock>"   the waiter <id> holds the lock now, after a release or after the
 *                                                   end of a lease (several waiters: "<id>,<id>… <token>,<token>…")
 *            "lost <id> <token> <lock>"             the hold <id> may have been taken away
 *            "ends <ms> <lock>"                     a holder's lease ends then: the waiters look again
 *            "beat"                                 from this client to itself: messages arrive
 *   unlock   "free <client>", or only "free"        the lock is free; <client>, if given, released it
 *            "entered <owner>"                      this owner holds the lock now: its other waiters may re-enter
 *            "ends <ms>"                            as in the inbox
 */
import { type Announced, slotsOf } from '../kind.ts'
import { lockOfChannel } from './keys.ts'

/** Receives messages, of Redis, of a quorum or of a store in memory. `lock`: the name of a lock. */
export interface MessageListener {
  /** The waiter `id` has been granted the lock. The same grant may be told again, also by an answer. */
  onGranted(id: string, grant: Announced, lock: string): void
  /** A hold may have been taken away. `why`: it certainly has, for this reason. Redis gives no reason. */
  onTaken(id: string, token: number, why?: string): void
  /** The lock may be free. `by`: the client that released the lock; undefined if that is not known. */
  onUnlocked(lock: string, by: string | undefined): void
  /** `owner` has got the lock, so its other waiters may re-enter. */
  onEntered(lock: string, owner: string): void
  /** The lease of a holder ends in `ms`, which is sooner than the lock's waiters may expect. */
  onEnds?(lock: string, ms: number): void
}

const ENTERED = 'entered '
const ENDS = 'ends '

/** Returns a function that reads a message and calls the listener, or `onBeat`. */
export function readerFor(listener: MessageListener, onBeat?: () => void) {
  return (channel: string, text: string): void => {
    const lock = lockOfChannel(channel)
    if (lock !== undefined) {
      if (text.startsWith(ENTERED)) listener.onEntered(lock, text.slice(ENTERED.length))
      else if (text.startsWith(ENDS)) listener.onEnds?.(lock, Number(text.slice(ENDS.length)))
      else listener.onUnlocked(lock, text.split(' ', 2)[1])
      return
    }
    const [word, id = '', token = ''] = text.split(' ', 3)
    if (word === 'beat') onBeat?.()
    else if (word === 'lost') listener.onTaken(id, Number(token))
    else if (word === 'ends') listener.onEnds?.(text.slice(`${word} ${id} `.length), Number(id))
    else if (word === 'handoff' || word === 'expiry') {
      // The lock's name is the remaining text, and may contain spaces.
      const name = text.slice(`${word} ${id} ${token} `.length)
      const tokens = token.split(',')
      for (const [i, each] of id.split(',').entries()) {
        const [number, slots] = (tokens[i] ?? '').split(':')
        listener.onGranted(each, { token: Number(number), via: word, slots: slots ? slotsOf(slots) : undefined }, name)
      }
    }
  }
}

/**
 * Checks what the two witnesses saw. They do not rely on the lock (witnesses.ts). One witness is a folder, in which
 * each process that holds the lock has a file. The other is a register, to which holders write their tokens. It refuses
 * a token that is older than the last one that it has accepted. It refuses no token of a semaphore, because the holders
 * of a semaphore write in any order.
 *
 * A process may be stopped during its hold and continue after its lease has ended. No lock can prevent that. So a
 * process records what a witness showed only if its own lease said `held` both before and after.
 *
 * The witnesses and the history have to agree. If a witness saw two holders at the same time, but the history shows no
 * overlap, then the history or its checker is wrong. This is a violation too, and its text says that the history does
 * not show it.
 */

import type { HistoryEvent } from './events.ts'
import type { History, Hold, Violation } from './history.ts'
import { reenters, weightOf } from './wants.ts'

export function checkWitnesses(history: History, found: readonly Violation[]): Violation[] {
  return [...met(history, found), ...fenced(history, found), ...unknownWrites(history)]
}

/**
 * Finds processes that held the lock at the same time although the lock does not allow it. Holds that had been taken
 * away do not count.
 */
function met(history: History, found: readonly Violation[]): Violation[] {
  return history.all('met').flatMap(event => {
    const { id, others, key, t } = event
    const excused = (each: string) => {
      const hold = history.holdById.get(each)
      return hold !== undefined && (hold.forged || wasTaken(history, hold, t))
    }
    const met = others.filter(each => !excused(each))
    if (excused(id) || met.length === 0) return []
    const weights = [id, ...met].map(each => weightOf(history.holdById.get(each)?.wants))
    const taken = weights.reduce((sum, { permits }) => sum + permits, 0)
    if (taken <= Math.max(...weights.map(({ of }) => of))) return []
    return {
      invariant: 'I1',
      key,
      text: `by the files: ${met.join(', ')} ${met.length > 1 ? 'were' : 'was'} inside when ${id} came${verdict(found, ['I1'], key)}`,
      events: [event],
    }
  })
}

/**
 * Finds refused writes. The register refuses a write if it has already accepted a newer token. The writer still held
 * the lock. So two callers held the lock at the same time, or a later grant had a smaller token than an earlier one.
 * There are two excuses:
 * - One of the two holds had been taken away. At a failover, for example, the old master keeps granting locks to
 *   processes that still reach it.
 * - One of the two tokens came from a forged message that a process believed. A forged token remains the newest in the
 *   register until Redis has issued a larger one.
 */
function fenced(history: History, found: readonly Violation[]): Violation[] {
  return history.all('fenced').flatMap(event => {
    const { id, key, token, newer, t } = event
    const hold = history.holdById.get(id)
    if (hold && (hold.forged || wasTaken(history, hold, t))) return []
    if (history.forgedTokens.has(`${newer} ${key}`)) return []
    const newest = history.holds.get(key)?.find(({ grant }) => grant.token === newer)
    if (newest && wasTaken(history, newest, t)) return []
    const text = `by the register: ${newer} was written while ${id} held with ${token}${verdict(found, ['I1', 'I2'], key)}`
    return { invariant: 'I2', key, text, events: [event] }
  })
}

/** Whether the hold may have been taken away before the time `at`. If so, the next holder was legitimate. */
function wasTaken(history: History, hold: Hold, at: number): boolean {
  return history.takings.cut(hold.grant, hold.request?.t) <= at
}

/**
 * Finds writes without a grant, writes with another token than their grant, writes that the register has lost, and
 * tokens that are smaller than the token written before.
 */
function unknownWrites(history: History): Violation[] {
  const violations: Violation[] = []
  const accepted = new Set<string>()
  for (const event of history.all('register')) {
    const report = (text: string, events: HistoryEvent[] = []) =>
      violations.push({ invariant: 'I2', key: event.key, text: `by the register: ${text}`, events })
    let last = 0
    for (const [token, id] of event.entries) {
      accepted.add(id)
      const hold = history.holdById.get(id)
      const grant = hold?.grant
      if (token < last && reenters(hold?.wants)) report(`${token} was written after ${last}`)
      if (!grant) report(`${id} wrote with token ${token} and has no grant in the history`)
      else if (grant.token !== token) report(`${id} wrote with token ${token}, its grant says ${grant.token}`, [grant])
      last = token
    }
  }
  for (const event of history.all('written')) {
    if (accepted.has(event.id)) continue
    const text = `by the register: the write of ${event.id} is not in it`
    violations.push({ invariant: 'I2', key: event.key, text, events: [event] })
  }
  return violations
}

function verdict(found: readonly Violation[], invariants: readonly string[], key: string): string {
  return found.some(violation => invariants.includes(violation.invariant) && violation.key === key)
    ? ', as the history shows'
    : ', which the history does not show'
}

/**
 * I3 for read-write locks: readers and writers take turns.
 *
 *   patience   a queued reader waits for one writer's turn at most: that of the current writer or of the next one
 *   reading    while readers hold the lock and a live writer is queued, the next caller to be admitted is a writer
 *
 * Like the check in order.ts, these rules start from a snapshot of the queues. They do not judge a waiter that a fault
 * may have reached. Re-entries are exempt, because an owner that holds the lock may re-enter even while others wait.
 * The rule `reading` judges only the first writer of the queue. The history does not show every writer's turn: a writer
 * with a head start may get ahead of the first writer, have its turn, and give up. So if a writer with a head start
 * gave up after the snapshot, the rule judges no writer.
 */
import type { Entry, EventOf } from './events.ts'
import { countedUntil } from './exclusion.ts'
import type { Attempt, History, Hold, Violation } from './history.ts'
import { groupBy, lowerBound } from './lists.ts'
import { Newcomers } from './newcomers.ts'
import { excuseOf, hasTurn, type Judged, waitedUntil } from './order.ts'

type Sight = EventOf<'queue'>

interface Finding {
  readonly id: string
  readonly violation: Violation | undefined
}

export function checkPhases(history: History): Judged {
  const violations: Violation[] = []
  const decided = new Set<string>()
  const reported = new Set<string>()
  const unknownTurns = groupBy(
    history.attempts.filter(({ request, hold }) => request.wants === 'write' && request.headStart && !hold),
    ({ request }) => request.key,
  )
  for (const [key, sights] of groupBy(history.all('queue'), sight => sight.key)) {
    const phases = new Phases(history, history.holds.get(key) ?? [], unknownTurns.get(key) ?? [])
    for (const sight of sights) {
      for (const { id, violation } of [...phases.patience(sight), ...phases.reading(sight)]) {
        decided.add(id)
        if (!violation || reported.has(id)) continue
        reported.add(id)
        violations.push(violation)
      }
    }
  }
  return { violations, decided: decided.size }
}

interface Turn {
  readonly hold: Hold
  /** The latest end of this hold and of all holds before it in the list. */
  readonly latest: number
}

class Phases {
  readonly #history: History
  /** The holds of writers, sorted by token. Re-entries are left out, so each hold is one writer's turn. */
  readonly #writing: readonly Turn[]
  /** The holds of readers, in the order in which their grants arrived. Re-entries are left out. */
  readonly #reading: readonly Turn[]
  readonly #newcomers: Newcomers
  readonly #unknownTurns: readonly Attempt[]

  constructor(history: History, holds: readonly Hold[], unknownTurns: readonly Attempt[]) {
    this.#history = history
    const granted = (wants: 'read' | 'write') =>
      holds.filter(hold => hold.wants === wants && hold.grant.via !== 'reentry')
    const readers = granted('read')
    this.#writing = turns(
      history,
      granted('write').sort((a, b) => a.grant.token - b.grant.token),
    )
    this.#reading = turns(history, readers)
    this.#newcomers = new Newcomers(readers)
    this.#unknownTurns = unknownTurns
  }

  patience(sight: Sight): Finding[] {
    const { readers = [] } = sight
    if (readers.length === 0) return []
    const first = lowerBound(this.#writing, sight.t, ({ latest }) => latest)
    const [, second] = this.#writing.slice(first, first + 2)
    if (!second) return []
    return readers.flatMap(entry =>
      this.#judged(sight, entry, second.hold, `${entry[0]}, a reader that was queued, waited for two writers' turns`),
    )
  }

  reading(sight: Sight): Finding[] {
    const [writer] = sight.entries
    const last = this.#reading[lowerBound(this.#reading, sight.from, ({ hold }) => hold.grant.t) - 1]
    if (!writer || !last || last.latest <= sight.t) return []
    const next = this.#nextReader(sight)
    if (!next) return []
    // If a writer's turn ended after the snapshot and before the reader's grant, it was then the readers' turn.
    const turn = this.#writing[lowerBound(this.#writing, sight.t, ({ latest }) => latest)]
    if (turn && turn.hold.grant.token < next.grant.token) return []
    const { t } = next.grant
    if (this.#unknownTurns.some(({ request, settled }) => request.t < t && settled > sight.from)) return []
    return this.#judged(
      sight,
      writer,
      next,
      `${next.grant.id} was let in to read beside others while ${writer[0]}, a writer, was queued`,
    )
  }

  /** Returns the reader that Redis admitted first, among the readers in this snapshot and those that arrived later. */
  #nextReader(sight: Sight): Hold | undefined {
    const queued = (sight.readers ?? []).map(([id, , , owner]) => this.#history.waiter(id, owner))
    const came = this.#newcomers.firstAfter(sight.t)
    const holds = [...queued.filter(waiter => hasTurn(waiter, sight)).map(({ hold }) => hold), came]
    let next: Hold | undefined
    for (const hold of holds) if (hold && (!next || hold.grant.token < next.grant.token)) next = hold
    return next
  }

  /**
   * Judges a waiter that had to be granted before `next`. Returns no finding if the waiter has had its turn or has an
   * excuse.
   */
  #judged(sight: Sight, entry: Entry, next: Hold, text: string): Finding[] {
    const [id, , , owner] = entry
    const waiter = this.#history.waiter(id, owner)
    if (!hasTurn(waiter, sight) || excuseOf(this.#history, sight, entry, next)) return []
    const events = [sight, next.grant, ...(waiter.hold ? [waiter.hold.grant] : [])]
    const violation = { invariant: 'I3', key: sight.key, text, events }
    return [{ id, violation: waitedUntil(waiter, next) ? violation : undefined }]
  }
}

function turns(history: History, holds: readonly Hold[]): Turn[] {
  let latest = Number.NEGATIVE_INFINITY
  return holds.map(hold => {
    latest = Math.max(latest, countedUntil(history, hold))
    return { hold, latest }
  })
}

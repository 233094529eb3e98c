/**
 * The read-write lock: any number of readers, or one writer; phase-fair (lua/read-write.lua).
 *
 * It is a semaphore with N permits, where N is larger than the number of readers can be. A claim says how many permits
 * it wants, and how many the lock has. It is granted only if the taken permits and the wanted permits are together not
 * more than the permits of the lock. A writer wants N of N permits. So a writer is granted the lock only if nobody
 * holds it. A reader wants 1 of N - 1 permits. So a reader is granted the lock beside other readers, but not beside a
 * writer, which has taken N permits.
 *
 * In a client, readers and writers belong to two kinds (`reading` and `writing`), whose locks use the same keys in
 * Redis. So a client's unfair readers wait in a line of their own, and a waiting writer does not block a reader that
 * may enter.
 */
import type { Found, KindDefinition, Traits } from '../../kind.ts'
import { placed, waitFor } from '../expected.ts'
import { type PermitsScripts, readWriteScripts } from '../scripts.ts'
import { firstOf, type LockState } from '../state.ts'
import { inOrder } from './inspection.ts'
import { Permits } from './permits.ts'

/** The lock's number of permits. lua/read-write.lua has the same number. */
const ALL = 1_000_000_000

/** Replaces the number of permits of a holder or waiter by its mode. */
function withMode<T extends { readonly permits?: number }>({ permits, ...rest }: T) {
  return { ...rest, mode: permits === ALL ? ('write' as const) : ('read' as const) }
}

/** The pace of a read-write lock is the length of a turn, of the readers or of a writer. */
function expectsTo(mode: 'read' | 'write'): Traits['expects'] {
  return ({ position, taken = 0, age }, { hold, readers }) =>
    waitFor(turnsBefore(mode, position, taken >= ALL, readers), hold, hold, age)
}

/** Returns how many turns end before a waiter's own one, the present one included. */
function turnsBefore(mode: 'read' | 'write', position: number, writing: boolean, readers: number): number {
  if (mode === 'read') return writing ? 1 : 2
  const place = writing || position > 1 ? position - readers : position
  // Between two writers, the readers that wait by then have a turn.
  const each = readers > 0 ? 2 : 1
  return writing ? place * each : 1 + (place - 1) * each
}

function stateOfReadWrite(key: string, found: Found): LockState {
  const holders = [...found.holders].sort(inOrder).map(withMode)
  const waiters = found.waiters.map(withMode)
  const readers = waiters.filter(({ mode }) => mode === 'read')
  const [writer, ...writers] = waiters.filter(({ mode }) => mode === 'write')
  // Sorts waiters in the order of their grants. While a writer holds the lock, the order is: all readers, then the
  // writers. Otherwise it is: the first writer, then the readers, then the other writers.
  const writing = holders.some(({ mode }) => mode === 'write')
  const first = writer ? [writer] : []
  const order = writing ? [...readers, ...first, ...writers] : [...first, ...readers, ...writers]
  const pace = found.pace && { hold: found.pace.hold, readers: readers.length }
  return {
    key,
    kind: 'readWrite',
    ...firstOf(holders),
    holders,
    waiters: placed(
      order,
      { holders, pace },
      (at, known, waiter) => expectsTo(waiter.mode)(at, known, undefined),
      writing ? ALL : 0,
    ),
  }
}

function sideOf(mode: 'read' | 'write'): KindDefinition<LockState, PermitsScripts> {
  const traits: Traits<LockState> = {
    noun: `${mode} lock`,
    mode,
    shared: mode === 'read',
    reentrant: true,
    wants: mode === 'read' ? `1/${ALL - 1}` : `${ALL}/${ALL}`,
    stateOf: stateOfReadWrite,
    expects: expectsTo(mode),
    heldBy({ taken }) {
      if (!taken) return undefined
      const [readers] = taken
      if (readers >= ALL) return 'held by the writer'
      return readers > 1 ? `held by ${readers} readers, the first is` : 'held by the reader'
    },
  }
  return {
    name: 'readWrite',
    traits,
    suffixes: ['', ':d', ':q', ':r', ':n'],
    least: 2,
    scripts: readWriteScripts,
    make: parts => new Permits(parts, traits),
  }
}

export const reading = sideOf('read')

export const writing = sideOf('write')

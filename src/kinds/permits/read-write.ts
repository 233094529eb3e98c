/**
 * The read-write lock: any number of readers, or one writer; phase-fair (lua/permits/read-write/choose.lua).
 *
 * It is a semaphore of a number that nobody reaches: a writer wants all of it, a reader one of one less than that. So no reader fits
 * beside a writer, and no writer beside anybody. Those who read and those who write are two kinds with one name in Redis, so
 * that each has a line of its own: who waits to write is in nobody's way who may read.
 */
import type { Inspection, KindDefinition, Parts } from '../../kind.ts'
import { QueuedKind } from '../queued-kind.ts'
import type { LockState } from '../state.ts'
import { type Found, firstOf, PermitsInspection } from './inspection.ts'
import { type ReadWriteNames, readWriteNamesOf } from './names.ts'
import { scripts } from './read-write/scripts.generated.ts'

type ReadWriteDefinition = KindDefinition<LockState, typeof scripts, ReadWriteNames>

/** lua/permits/read-write/choose.lua knows it. */
const ALL = 1_000_000_000

class ReadWrite extends QueuedKind {
  readonly shared: boolean
  readonly reentrant = true
  readonly inTurns = false
  // What is handed on within the client would be kept from those who may share it.
  protected readonly block = 0
  protected override readonly wants: string
  readonly handOff = undefined
  readonly inspection: Inspection<LockState>

  constructor(parts: Parts<typeof scripts, ReadWriteNames>, mode: 'read' | 'write') {
    super(parts)
    this.shared = mode === 'read'
    this.wants = mode === 'read' ? `1/${ALL - 1}` : `${ALL}/${ALL}`
    this.inspection = new PermitsInspection(parts, stateOfReadWrite, key => this.sweep(key))
  }
}

/** Of what wants something of a read-write lock. */
function withMode<T extends { readonly permits?: number }>({ permits, ...rest }: T) {
  return { ...rest, mode: permits === ALL ? ('write' as const) : ('read' as const) }
}

function stateOfReadWrite(key: string, found: Found): LockState {
  const holders = found.holders.map(withMode)
  const waiters = found.waiters.map(withMode)
  const readers = waiters.filter(({ mode }) => mode === 'read')
  const [writer, ...writers] = waiters.filter(({ mode }) => mode === 'write')
  // Behind a writer come all readers, and then the first writer; behind readers it is the other way.
  const writing = holders.some(({ mode }) => mode === 'write')
  const first = writer ? [writer] : []
  const order = writing ? [...readers, ...first, ...writers] : [...first, ...readers, ...writers]
  return {
    key,
    kind: 'readWrite',
    ...firstOf(holders),
    holders,
    waiters: order.map((waiter, i) => ({ ...waiter, position: i + 1 })),
  }
}

const common = { name: 'readWrite', namesOf: readWriteNamesOf, scripts }

export const reading: ReadWriteDefinition = { ...common, make: parts => new ReadWrite(parts, 'read') }

export const writing: ReadWriteDefinition = { ...common, make: parts => new ReadWrite(parts, 'write') }

/** Hand-made histories: the checker finds what a broken lock does, and finds nothing in the history of a correct one. */
import { describe, expect, test } from 'vitest'
import { at, found, foundOverFive, granted, lost, queue, queues, released, tokenOf } from './by-hand.ts'
import type { Entry, HistoryEvent } from './events.ts'
import type { Wants } from './wants.ts'

type Times = Parameters<typeof granted>[2]
type Row = [what: string, invariant: string, history: (HistoryEvent | HistoryEvent[])[]]

/** Makes a request, its grant at `issued`, and its release at `until`. */
const hold = (id: string, issued: number, until: number, fields: Times = {}) => [
  ...granted(id, issued, fields),
  ...released(id, until),
]
const wanting =
  (wants: Wants) =>
  (id: string, issued: number, until: number, fields: Times = {}) =>
    hold(id, issued, until, { wants, ...fields })
/** Makes a hold of a fair waiter that was queued early. */
const fair = (id: string, issued: number) => hold(id, issued, issued + 10, { asked: 10 })
const [read, write] = [wanting('read'), wanting('write')]
const permits = (taken: number, of: number, ...call: Parameters<typeof hold>) => wanting([taken, of])(...call)
const asking = (id: string, t: number, fields: object = {}) =>
  at(t, 'request', { worker: `w-${id}`, attempt: id, key: 'k', mode: 'fair', owner: id, ...fields })
const ended = (id: string, t: number, how: 'aborted' | 'refused' | 'deadlock') =>
  at(t, 'end', { worker: `w-${id}`, attempt: id, how })
const entry = (id: string, ticket: string): Entry => [id, ticket, `w-${id}`, id]
const register = (...ids: [id: string, issued: number][]) =>
  at(900, 'register', { key: 'k', entries: ids.map(([id, issued]) => [tokenOf(issued), id]) })
const written = (id: string, t: number) => at(t, 'written', { worker: `w-${id}`, key: 'k', id, token: tokenOf(t - 5) })
const over = [
  at(1_000, 'healed', { bound: 500 }),
  at(2_000, 'exited', { worker: 'w-a', forced: false }),
  at(2_001, 'left', { names: [] }),
]
const calm = at(0, 'calm', {})

/** Two holds, one after the other; both holders write to the register. */
const twoHolds = [hold('a', 10, 20), written('a', 15), hold('b', 30, 40), written('b', 35)].flat()

/** What no lock may do, whatever its kind. */
const always: Row[] = [
  ['a lease that is longer than any caller requests', 'I1', [hold('a', 10, 20, { lease: 3_005 })]],
  [
    'a renewal for longer than any caller requests',
    'I1',
    [hold('a', 10, 20), at(15, 'renewed', { worker: 'w-a', id: 'a', deadline: 3_016 })],
  ],
  [
    'a ticket that changes',
    'I3',
    [queue(100, 'a'), at(110, 'queue', { key: 'k', from: 109, entries: [entry('a', '9')] })],
  ],
  [
    'a reader’s ticket that changes',
    'I3',
    [
      queues(100, { readers: ['a'] }),
      at(110, 'queue', { key: 'k', from: 109, entries: [], readers: [entry('a', '9')] }),
    ],
  ],
  ['a waiter that is never answered', 'I4', [asking('a', 10), over]],
  ['a promise that never settles', 'I6', [asking('a', 10), over]],
  [
    'a waiter that is answered long after all faults were healed',
    'I4',
    [asking('a', 10), ended('a', 1_502, 'aborted'), over],
  ],
  [
    'a waiter that is granted nothing for long, while nobody holds',
    'I4',
    [calm, hold('a', 10, 20), hold('b', 6_300, 6_310, { asked: 5 })],
  ],
  [
    'a waiter that came later, and is granted nothing for long',
    'I4',
    [calm, hold('a', 10, 20), hold('b', 7_000, 7_010, { asked: 700 })],
  ],
  ['a key that is left', 'I7', [at(900, 'left', { names: ['lock:{k}:q'] })]],
  ['a process that does not end on its own', 'I7', [at(900, 'exited', { worker: 'w-a', forced: true })]],
  ['an error that must never happen', 'I6', [at(900, 'crash', { worker: 'w-a', error: 'unhandled rejection' })]],
  ['a hold that is neither released nor lost', 'I8', [granted('a', 10)]],
  ['a release that never settles', 'I8', [granted('a', 10), released('a', 20).slice(0, 1)]],
  ['a loss that was not signalled', 'I8', [granted('a', 10, { lease: 100 }), released('a', 150, false)]],
  ['a write without a grant', 'I2', [twoHolds, register(['a', 10], ['b', 30], ['nobody', 31])]],
  ['a write with another token than its grant', 'I2', [twoHolds, register(['a', 10], ['b', 31])]],
  ['a write that the register has lost', 'I2', [twoHolds, register(['a', 10])]],
]

const mutex: Row[] = [
  ['two holders', 'I1', [hold('a', 10, 40), hold('b', 20, 30)]],
  ['two holders, one of which had renewed its lease', 'I1', [hold('a', 10, 60, { lease: 20 }), hold('b', 40, 50)]],
  [
    'a hold that was renewed past the next grant',
    'I1',
    [
      granted('a', 10, { lease: 30 }),
      at(20, 'renewed', { worker: 'w-a', id: 'a', deadline: 60 }),
      lost('a', 60),
      released('a', 61, false),
      hold('b', 50, 55),
    ],
  ],
  ['a token that was given to two owners', 'I2', [hold('a', 10, 20), hold('b', 30, 40, { off: -20 })]],
  ['a token that was given twice to one owner', 'I2', [hold('a', 10, 20), hold('b', 30, 40, { owner: 'a', off: -20 })]],
  ['a token that is ahead of the clocks of all servers', 'I2', [hold('a', 10, 20, { off: 492 })]],
  ['a token that goes back', 'I2', [hold('a', 10, 20), hold('b', 30, 40, { off: -21 })]],
  ['tokens in another order than the holds', 'I2', [hold('a', 10, 20, { off: 21 }), hold('b', 30, 40, { asked: 9 })]],
  ['writes in another order than their tokens', 'I2', [twoHolds, register(['b', 30], ['a', 10])]],
  [
    'two callers inside, by the files',
    'I1',
    [twoHolds, at(32, 'met', { worker: 'w-b', key: 'k', id: 'b', others: ['a'] })],
  ],
]

const large = permits(3, 3, 'large', 130, 140, { asked: 10 })
const small = (id: string, issued: number, fields: Times) =>
  permits(1, 3, id, issued, issued + 10, { mode: 'once', ...fields })
const semaphore: Row[] = [
  ['a token that is ahead of the one server’s clock', 'I2', [permits(1, 1, 'a', 10, 20, { off: 52 })]],
  [
    'more permits than there are',
    'I1',
    [permits(2, 3, 'a', 10, 60), permits(1, 3, 'b', 20, 50), permits(1, 3, 'c', 30, 40)],
  ],
  [
    'more permits than the last caller’s number',
    'I1',
    [permits(1, 3, 'a', 10, 60), permits(1, 3, 'b', 20, 50), permits(1, 2, 'c', 30, 40)],
  ],
  [
    'a holder that re-enters',
    'I2',
    [permits(1, 3, 'a', 10, 60), permits(1, 3, 'b', 20, 50, { owner: 'a', via: 'reentry', off: -10 })],
  ],
  [
    'a small request that overtakes a larger one, unlike an earlier one',
    'I3',
    [queue(100, 'large'), large, small('b', 150, { asked: 95 }), small('c', 110, { asked: 105 })],
  ],
  [
    'one of two small requests, which overtakes a larger one',
    'I3',
    [
      queue(100, 'large'),
      large,
      small('b', 150, { asked: 105 }),
      small('c', 110, { asked: 107 }),
      small('d', 170, { asked: 109 }),
    ],
  ],
]

const readWrite: Row[] = [
  ['a writer beside a reader', 'I1', [read('a', 10, 40), write('b', 20, 30)]],
  ['a reader’s token that was given to two owners', 'I2', [read('a', 10, 20), read('b', 30, 40, { off: -20 })]],
  [
    'the token of a present reader that was given to another',
    'I2',
    [read('a', 10, 60), read('b', 20, 50, { off: -10 })],
  ],
  [
    'an unqueued reader that overtakes',
    'I3',
    [
      queues(100, { writers: ['a'] }),
      read('b', 110, 120, { asked: 105, mode: 'once' }),
      write('a', 130, 140, { asked: 10 }),
    ],
  ],
  [
    'an unqueued writer that overtakes',
    'I3',
    [
      queues(100, { readers: ['a'] }),
      write('b', 110, 120, { asked: 105, mode: 'once' }),
      read('a', 130, 140, { asked: 10 }),
    ],
  ],
  [
    'a writer that is overtaken by another',
    'I3',
    [queues(100, { writers: ['a', 'b'] }), write('b', 110, 120, { asked: 10 }), write('a', 130, 140, { asked: 10 })],
  ],
  [
    'a reader that is admitted beside others while a writer is queued',
    'I3',
    [
      queues(100, { writers: ['w'] }),
      read('a', 50, 120),
      read('r', 110, 160, { asked: 105 }),
      write('w', 200, 210, { asked: 10 }),
    ],
  ],
  ['a reader that is admitted to write', 'I6', [read('a', 10, 90), write('up', 30, 40, { owner: 'a', worker: 'w-a' })]],
  [
    'a deadlock of a caller that does not read',
    'I6',
    [read('a', 10, 90), asking('b', 30, { wants: 'write' }), ended('b', 40, 'deadlock')],
  ],
]

test.each([...always, ...mutex, ...semaphore, ...readWrite])('finds %s: %s', (_, invariant, history) => {
  expect(found(...history)).toContain(invariant)
})

describe('over a quorum', () => {
  test.each([...always, ...mutex])('finds %s: %s', (_, invariant, history) => {
    expect(foundOverFive(...history)).toContain(invariant)
  })
})

const several = (wants: Wants) =>
  [wanting(wants)('a', 10, 60), wanting(wants)('b', 20, 50), wanting(wants)('c', 70, 80, { asked: 65 })].flat()

test.each<[string, HistoryEvent[]]>([
  ['a mutex', [...twoHolds, ...hold('c', 50, 60), register(['a', 10], ['b', 30])]],
  ['a fair mutex', [queue(100, 'a', 'b'), ...fair('a', 110), ...fair('b', 130)]],
  [
    'a lock that nobody wants for long',
    [...hold('a', 10, 20), asking('x', 30), ended('x', 200, 'aborted'), ...hold('b', 9_000, 9_010)],
  ],
  ['a lock that is wanted until late', [...hold('a', 1_210, 1_600), ...hold('b', 1_610, 1_650, { asked: 1_200 })]],
  ['a lock that is wanted for a time', [asking('x', 10, { patience: 5_000 }), ended('x', 1_400, 'aborted')]],
  ['a semaphore that nobody gets', [queue(100, 'x'), asking('x', 10, { wants: [1, 3] }), ended('x', 300, 'aborted')]],
  ['a semaphore', several([1, 2])],
  ['a semaphore with a queue', [queue(100, 'large'), ...large, ...small('b', 150, { asked: 105 })]],
  [
    'a queue whose last waiter gives up',
    [queue(100, 'a', 'b', 'c'), ...fair('a', 110), ...fair('b', 130), asking('c', 10), ended('c', 300, 'aborted')],
  ],
  [
    'a queue whose first waiter dies',
    [queue(100, 'c', 'a'), asking('c', 10), at(105, 'died', { worker: 'w-c' }), ...fair('a', 110)],
  ],
  [
    'readers in the queue',
    [
      queues(100, { readers: ['a', 'b'] }),
      ...read('x', 90, 120),
      ...read('a', 110, 120, { asked: 10 }),
      ...read('b', 111, 120, { asked: 10 }),
    ],
  ],
  ['readers', several('read')],
  ['readers and writers', [...write('v', 5, 8), ...read('a', 10, 20), ...read('b', 11, 25), ...write('w', 30, 40)]],
])('finds nothing in the history of %s without a fault', (_, history) => {
  expect(found([calm, ...history, ...over])).toEqual([])
  expect(foundOverFive([calm, ...history, ...over])).toEqual([])
})

/** Tests that decoding an encoded claim returns the same claim, whatever names it contains. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeClaim, decodeHolder, decodeNames, encodeClaim } from '../../src/kinds/claim.ts'
import { waitersOf } from '../../src/kinds/state.ts'

const id = 'client-name_0123456789abcdef'
const terms = { id, lease: 30_000, headStart: 0 }

test('a claim has the form that scripts and other clients read', () => {
  expect(encodeClaim({ ...terms, owner: 'ann', label: 'a label' }, 15_000)).toBe(`${id} 3 30000 15000 0 anna label`)
  expect(encodeClaim({ ...terms, owner: id, label: 'a label', headStart: 1.5 }, 900)).toBe(
    `${id} 0 30000 900 1500 a label`,
  )
})

test.each([
  ['with characters of several bytes', 'Zoë 🔒 李', 'naïve ☕'],
  ['with spaces, even at their ends', ' a  b ', '  c '],
  ['with line ends', 'a\nb\r\n', '\n\nc\u2028'],
  ['that look like the numbers of a claim', '3 30000 15000 0 ', ' 0 '],
  ['with no label', 'ann', ''],
  ['that look like another id', id.replace('c', 'd'), id],
  ['with a NUL', '\0', 'a\0b'],
])('owners and labels are read as they were written: %s', (_, owner, label) => {
  expect(decodeClaim(encodeClaim({ ...terms, owner, label }, 15_000))).toEqual({
    ...terms,
    owner,
    label,
    waiterTtl: 15_000,
  })
})

test.each(['a label', '', '\n', ' ☕ '])('the owner of a caller without a name is its id, with the label %j', label => {
  expect(decodeClaim(encodeClaim({ ...terms, owner: id, label }, 15_000))).toMatchObject({ id, owner: id, label })
})

test('any claim is read as it was written', () => {
  const text = fc.string({ unit: 'grapheme' })
  const claim = fc.record({
    owner: fc.oneof(
      fc.constant(id),
      text.filter(owner => owner !== ''),
    ),
    label: text,
    lease: fc.nat(),
    headStart: fc.nat().map(micros => micros / 1000),
  })
  fc.assert(
    fc.property(claim, fc.nat(), (given, waiterTtl) => {
      const headStart = Math.round(given.headStart * 1000)
      expect(decodeClaim(encodeClaim({ id, ...given }, waiterTtl))).toEqual({ id, ...given, waiterTtl, headStart })
    }),
  )
})

describe('the names at the end of a claim', () => {
  test('are separated by the length of the owner in bytes', () => {
    expect(decodeNames('Zoë🔒', Buffer.byteLength('Zoë'))).toEqual({ owner: 'Zoë', label: '🔒' })
    expect(decodeNames('a label', 0)).toEqual({ owner: undefined, label: 'a label' })
  })
})

test('a holder is written as a token, the time from which its lease counts, and a claim', () => {
  const claim = encodeClaim({ ...terms, owner: 'Zoë', label: 'a\nlabel' }, 15_000)
  const until = 1795269405035 + terms.lease
  const expected = { token: 1795269405034888, until, claim: decodeClaim(claim) }
  expect(decodeHolder(`1795269405034888 1795269405035999 ${claim}`)).toEqual(expected)
})

test.each(['', 'free', `${id}`, `${id} 0 30000`, `${id} x 30000 15000 0 a label`])(
  '%j is neither a claim nor a holder',
  text => {
    expect(decodeClaim(text)).toBeUndefined()
    expect(decodeHolder(text)).toBeUndefined()
    expect(decodeHolder(`1795269405034888 1795269405035999 ${text}`)).toBeUndefined()
  },
)

// The scripts compare whole ms. If a waiter were shown for less time than it counts, `maxWaiters` could refuse a call
// although no waiter is shown.
test('a waiter is shown until the end of the ms in which it expires', () => {
  const claim = decodeClaim(encodeClaim({ ...terms, owner: 'ann', label: '' }, 600))!
  const shown = (micros: number) => waitersOf([{ claim, joined: 400_000 }], new Map(), micros).length
  expect([shown(1_000_999), shown(1_001_000)]).toEqual([1, 0])
})

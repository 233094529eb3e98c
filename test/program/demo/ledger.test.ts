import { beforeEach, describe, expect, test } from 'vitest'
import { type Ledger, openLedger } from '../../../cli/demo/ledger.ts'

const pid = 7

let ledger: Ledger

beforeEach(() => {
  ledger = openLedger(50)
})

function enter(section: string, at: number, leaseEnds: number | null): void {
  const grant = leaseEnds === null ? { hold: null, token: null } : { hold: `h ${section}`, token: at }
  const order = `order of ${section}`
  const request = { request: 1, requestedAt: 0 }
  ledger.entered(pid, { kind: 'entered', section, order, at, leaseEnds, found: null, ...request, ...grant })
}

const section = (id: string) => ledger.sections.get(id)

test('a completed section ends when its worker reported, and answers an order', () => {
  enter('a', 10, 1_500)
  expect(section('a')).toMatchObject({ begin: 10, end: Number.POSITIVE_INFINITY, how: 'open' })
  ledger.left({ kind: 'left', section: 'a', order: 'order of a', at: 30, answer: 'sold', stock: 49 })
  expect(section('a')).toMatchObject({ end: 30, how: 'released' })
  expect(ledger).toMatchObject({ answered: 1, sold: 1, stock: 49 })
})

describe('a killed process', () => {
  test('its sections end with their last known leases, except those that had ended before', () => {
    enter('a', 10, 1_500)
    ledger.left({ kind: 'left', section: 'a', order: 'order of a', at: 30, answer: 'sold out', stock: 0 })
    enter('b', 40, 200)
    ledger.paused({ kind: 'paused', section: 'b', order: 'order of b', leaseEnds: 1_540, stockRead: 3 })
    ledger.killed(pid, 60)
    expect(section('a')).toMatchObject({ end: 30, how: 'released' })
    expect(section('b')).toMatchObject({ end: 1_540, how: 'killed' })
  })

  test('without a lock they end at once', () => {
    enter('a', 10, null)
    ledger.killed(pid, 60)
    expect(section('a')).toMatchObject({ end: 60, how: 'killed' })
  })
})

describe('a frozen process', () => {
  const lost = { kind: 'lost', section: 'a', order: 'order of a' } as const

  beforeEach(() => {
    enter('a', 10, 1_500)
    ledger.froze(pid, 20, 'a')
    ledger.thawed(3_020)
  })

  test('whose write is refused has ended with its lease', () => {
    ledger.lost({ ...lost, refused: { token: 10, seen: 99 }, wroteAt: null })
    expect(section('a')).toMatchObject({ end: 1_500, how: 'lost' })
    expect(ledger.lateWrite).toBe('refused')
  })

  test('whose write is accepted lasted until then, although it knows that it lost the lock', () => {
    ledger.lost({ ...lost, refused: null, wroteAt: 3_030 })
    expect(section('a')).toMatchObject({ end: 3_030, how: 'lost' })
    expect(ledger.lateWrite).toBe('accepted')
  })

  test('that leaves as if nothing had happened has written late', () => {
    ledger.left({ kind: 'left', section: 'a', order: 'order of a', at: 3_030, answer: 'sold', stock: 3 })
    expect(section('a')).toMatchObject({ end: 3_030, how: 'released' })
    expect(ledger.lateWrite).toBe('accepted')
  })

  test('that loses another section is no evidence about the late write', () => {
    enter('b', 10, 1_500)
    ledger.lost({ ...lost, section: 'b', refused: { token: 10, seen: 99 }, wroteAt: null })
    expect(ledger.lateWrite).toBeNull()
  })
})

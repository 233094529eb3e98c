/**
 * Tests the line that `baton run` shows on a terminal while it waits for a lock. The line never exceeds the available
 * columns. If it is too long, names are shortened first.
 */
import stringWidth from 'string-width'
import { expect, test } from 'vitest'
import { waitingLine } from '../../../cli/waiting.ts'
import type { LockState } from '../../../src/index.ts'

const names = {
  plain: ['nightly-report', 'web-1:4711'],
  long: ['k'.repeat(300), 'l'.repeat(300)],
  wide: [`夜間報告書-${'長'.repeat(30)}`, `机器-${'主'.repeat(40)}`],
  hostile: [`k\u001b[2J\n${'長'.repeat(20)}`, 'l\u202e\u0007'.repeat(9)],
} as const

const line = (key: string, label: string, waited: number, columns: number) => {
  const waiter = { id: 'i', owner: 'me', label: 'mine', position: 1, waited, expiresIn: 1 }
  const who = { owner: 'o', label, fencingToken: 1_000_000, ttl: 1 }
  const held = { kind: 'mutex', locked: true, ...who, holds: 1, holders: [{ id: 'h', heldFor: 40, ...who }] } as const
  const state: LockState = { key, ...held, waiters: [waiter, { ...waiter, owner: 'another', position: 2 }] }
  // `state` was read `age` ms ago. At that time, the lock had been held for 40 ms. So now the lock has been held for
  // `age` + 40 ms, which is `waited`.
  return waitingLine(state, { owner: 'me', waited, age: waited - 40 }, columns)
}

test.each(Object.entries(names))('%s names, in every width', (_, [key, label]) => {
  for (const columns of [...Array.from({ length: 60 }, (_, i) => i + 1), 79, 80, 120, 200]) {
    for (const waited of [48, 15_000, 100_000_000]) {
      const text = line(key, label, waited, columns)
      expect(stringWidth(text), `${columns}: ${text}`).toBeLessThanOrEqual(columns)
      expect(text).not.toMatch(/\p{Cc}|\p{Cf}/u)
      if (columns >= 79)
        expect(text).toMatch(/^waiting \d\S*( \d+m| \d+h)? \(1 of 2\) for \S.*, held by \S.* for \d.*[smh]$/)
    }
  }
})

test('a reader waits for readers only if no writer waits before it', () => {
  const holder = {
    id: 'h',
    owner: 'o',
    label: 'web-1',
    mode: 'read',
    fencingToken: 1_000_000,
    ttl: 1,
    heldFor: 40,
  } as const
  const waiter = (label: string, mode: 'read' | 'write', position: number) =>
    ({ id: label, owner: label, label, mode, position, waited: 1_000, expiresIn: 1 }) as const
  const waiters = [waiter('importer', 'write', 1), waiter('web-2', 'read', 2)]
  const state: LockState = { key: 'prices', kind: 'readWrite', locked: true, holds: 1, holders: [holder], waiters }
  const shown = (owner: string, of = state) => waitingLine(of, { owner, waited: 1_000, age: 0 }, 100)
  expect(shown('web-2')).toBe('waiting 1s (2 of 2) for prices, behind the writer importer')
  expect(shown('importer')).toBe('waiting 1s (1 of 2) for prices, held by web-1 for 40ms')
  const writing: LockState = { ...state, holders: [{ ...holder, mode: 'write' }] }
  expect(shown('web-2', writing)).toBe('waiting 1s (2 of 2) for prices, held by web-1 for 40ms')
})

test('shows everything if there is room', () => {
  expect(line('nightly-report', 'web-1', 83_000, 100)).toBe(
    'waiting 1m 23s (1 of 2) for nightly-report, held by web-1 for 1m 23s',
  )
})

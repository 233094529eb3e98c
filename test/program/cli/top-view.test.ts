/** Tests `baton top` without a terminal: how keys change the view, and how the screen shows the view. */
import { stripVTControlCharacters } from 'node:util'
import picocolors from 'picocolors'
import stringWidth from 'string-width'
import { describe, expect, test } from 'vitest'
import type { Picture } from '../../../cli/live/picture.ts'
import type { Watch } from '../../../cli/live/watch.ts'
import { frame, pageOf } from '../../../cli/top/frame.ts'
import { firstView, type Pressed, press, type View, visible } from '../../../cli/top/view.ts'
import { groupsSeen, lockSeen, picture, readWriteSeen } from './locks.ts'

const size = { columns: 79, rows: 24 }
const many = picture(...Array.from({ length: 50 }, (_, i) => lockSeen(`lock-${String(i).padStart(2, '0')}`)))
const groups = Array.from({ length: 30 }, (_, i) => ({
  ...{ group: i === 0 ? 'a\u001b[2J' : `tenant-${i}`, taken: 1, weight: i + 0.5, waiting: 1 },
  ...(i === 0 && { limit: 1 }),
}))
const grouped = picture(groupsSeen('jobs', groups))
const long = picture(lockSeen('busy', { waits: Array.from({ length: 100 }, (_, i) => 10_000 - i) }))

/** Presses these keys: a single character is typed as it is, and any other key is given by its name. */
function pressed(shown: Picture, keys: readonly string[], from: View = firstView): View {
  return keys.reduce<View>((view, name) => {
    const next = pressOne(shown, view, name)
    if (typeof next === 'string') throw new Error(`${name} is ${next}`)
    return next
  }, from)
}

function pressOne(shown: Picture, view: View, name: string): Pressed {
  const text = [...name].length === 1 ? name : ''
  return press(view, { name: text.toLowerCase() || name, ctrl: false, text }, shown, pageOf(view, size))
}

function selected(view: View, shown: Picture): string | undefined {
  const { rows, cursor } = visible(view, shown)
  return rows[cursor]?.key
}

function shownBy(view: View, shown: Picture | undefined, more: Partial<Watch> & { paused?: boolean } = {}, at = size) {
  const { paused = false, ...watch } = more
  const live = { picture: shown, age: 100, took: 10, pace: 1_000, trouble: undefined, surveying: undefined, ...watch }
  const seen = { view, watch: live as Watch, paused, interval: 1_000, where: 'redis.test:6379' }
  return frame(seen, at, picocolors.createColors(false)).map(stripVTControlCharacters)
}

describe('keys', () => {
  test('move the cursor, but not past the last row', () => {
    const names = (...keys: string[]) => selected(pressed(many, keys), many)
    expect(names()).toBe('lock-00')
    expect(names('down', 'j', 'up')).toBe('lock-01')
    expect(names('up')).toBe('lock-00')
    expect(names('pagedown')).toBe('lock-20')
    expect(names('G')).toBe('lock-49')
    expect(names('end', 'down', 'k')).toBe('lock-48')
    expect(names('end', 'g')).toBe('lock-00')
  })

  test('the cursor stays on its lock when others come and the order changes', () => {
    const view = pressed(many, ['down', 'down'])
    expect(selected(view, picture(lockSeen('a'), ...many.locks))).toBe('lock-02')
    expect(selected({ ...view, reversed: true }, many)).toBe('lock-02')
    expect(selected(pressed(many, ['g'], view), picture(lockSeen('a'), ...many.locks))).toBe('a')
    const gone = picture(...many.locks.filter(({ key }) => key !== 'lock-02'))
    expect(selected(view, gone)).toBe('lock-03')
  })

  test('sort: by number, by the next column, and around', () => {
    expect(firstView.order).toBe('waiters')
    expect(pressed(many, ['s'])).toMatchObject({ order: 'longestWait', reversed: false })
    expect(pressed(many, ['s', 's'])).toMatchObject({ order: 'key' })
    expect(pressed(many, ['2'])).toMatchObject({ order: 'heldFor', reversed: false })
    expect(pressed(many, ['2', '2'])).toMatchObject({ order: 'heldFor', reversed: true })
    expect(pressed(many, ['2', '2', '2'])).toMatchObject({ reversed: false })
    expect(pressed(many, ['r'])).toMatchObject({ order: 'waiters', reversed: true })
  })

  test('a filter is typed, kept, and dropped', () => {
    const typed = pressed(many, ['/', 'q', '1', 'backspace', 'backspace', '1', '7'])
    expect(typed).toMatchObject({ filter: '17', typing: true })
    expect(visible(typed, many).rows.map(({ key }) => key)).toEqual(['lock-17'])
    const kept = pressed(many, ['return'], typed)
    expect(kept).toMatchObject({ filter: '17', typing: false })
    expect(pressed(many, ['escape'], kept)).toMatchObject({ filter: '' })
    expect(pressed(many, ['escape'], typed)).toMatchObject({ filter: '', typing: false })
    expect(pressed(many, ['/', '🔒', 'backspace'])).toMatchObject({ filter: '' })
  })

  test('open a lock, scroll its queue, and close it', () => {
    const open = pressed(long, ['return'])
    expect(open.opened).toEqual({ key: 'busy', kind: 'mutex' })
    const page = pageOf(open, size)
    expect(pressed(long, ['end'], open).place).toBe(100 - page)
    expect(pressed(long, ['end', 'down', 'up'], open).place).toBe(100 - page - 1)
    expect(pressed(long, ['escape'], open)).toMatchObject({ opened: undefined, selected: { key: 'busy' } })
    expect(pressed(picture(), ['return']).opened).toBeUndefined()
  })
})

describe('the screen', () => {
  test('shows how fresh it is', () => {
    const status = (...[shown, more]: [Picture?, Parameters<typeof shownBy>[2]?]) => shownBy(firstView, shown, more)[1]!
    expect(status(many)).toBe('reading every 1s')
    expect(status(many, { took: 400, pace: 2_000 })).toBe('reading every 2s, because one reading takes 400ms')
    expect(status(many, { paused: true, age: 65_000 })).toBe('paused, data as of 1m 5s ago')
    expect(status(many, { surveying: 5_000, age: 6_000 })).toBe('data as of 6s ago: no answer from Redis for 5s')
    expect(status(many, { trouble: new Error('gone\u001b[2J'), age: 6_000 })).toBe('data as of 6s ago: gone\\u{1b}[2J')
    expect(status(undefined)).toBe('reading …')
    expect(status(undefined, { trouble: new Error('gone') })).toBe('no data yet: gone')
  })

  test('fits, whatever its size', () => {
    const view = pressed(long, ['return'])
    for (const columns of [1, 5, 20, 39, 40, 79, 139, 300]) {
      for (const rows of [1, 2, 5, 24, 60]) {
        for (const lines of [
          shownBy(firstView, many, {}, { columns, rows }),
          shownBy(view, long, {}, { columns, rows }),
          shownBy(firstView, grouped, {}, { columns, rows }),
          ...[0, 29, 30, 31].map(place =>
            shownBy({ ...pressed(grouped, ['return']), place }, grouped, {}, { columns, rows }),
          ),
        ]) {
          expect(lines).toHaveLength(rows)
          for (const line of lines)
            expect(stringWidth(line), `${columns}×${rows}: ${line}`).toBeLessThanOrEqual(columns)
        }
      }
    }
  })

  test('a long name is cut in its middle', () => {
    const [, , , row] = shownBy(firstView, picture(lockSeen(`order:${'9'.repeat(80)}:refund`)))
    expect(row).toMatch(/> order:9+…9+:refund /)
  })

  test('an opened lock, and one that is gone', () => {
    const view = pressed(long, ['return', 'down'])
    const [, , name, holder, owner, times, titles, first] = shownBy(view, long)
    expect(name).toBe('busy')
    expect(holder).toBe('  holder someone')
    expect(owner).toBe('  owner  an owner')
    expect(times).toMatch(/^ {2}held for 1s, 20s left, fencing token \d+$/)
    expect(titles).toMatch(/^ +# WAITER +OWNER +WAITED EXPIRES$/)
    expect(first).toMatch(/^ +2 waiter-2 +owner-2 +9\.9s +9s$/)
    const [busy] = long.locks
    const estimates = busy!.waiters.map(waiter => ({ ...waiter, expected: 5_000 }))
    const [heads, row] = shownBy(view, picture({ ...busy!, waiters: estimates })).slice(6)
    expect(heads).toMatch(/^ +# WAITER +OWNER +WAITED EXPIRES EXPECTED$/)
    expect(row).toMatch(/^ +2 waiter-2 +owner-2 +9\.9s +9s +5s$/)
    const gone = shownBy(view, many)
    expect(gone.slice(2, 4)).toEqual(['busy', '  the lock is free'])
  })

  test('readers and writers', () => {
    const shown = picture(readWriteSeen('cache', [{ mode: 'read' }, { mode: 'read' }], [4_000]))
    const [, , row] = shownBy(firstView, shown).slice(1)
    expect(row).toMatch(/^> cache +read someone \+1 +1s +20s +1 +4s$/)
    const lines = shownBy(pressed(shown, ['return']), shown)
    expect(lines[3]).toBe('  read-write lock: held by 2 readers, 1 waiting')
    expect(lines[6]).toMatch(/ MODE +FOR /)
    expect(lines[7]).toMatch(/^ holds someone +read +1s /)
    expect(lines[9]).toMatch(/^ +1 waiter-1 +write +4s /)
  })

  test('groups: their number in the list; an opened lock begins with them', () => {
    expect(shownBy(firstView, grouped)[2]).toMatch(/ LONGEST GROUPS$/)
    expect(shownBy(firstView, grouped)[3]).toMatch(/^> jobs +30\/50 som…ne \+29 +1s +20s +30 +3s +30$/)
    expect(shownBy(firstView, grouped, {}, { columns: 58, rows: 24 })[2]).toMatch(/ LONGEST$/)
    expect(shownBy(firstView, long)[2]).toMatch(/ LONGEST$/)
    const view = pressed(grouped, ['return'])
    const table = (keys: string[], at = size) => shownBy(pressed(grouped, keys, view), grouped, {}, at).slice(6, -1)
    const [heads, full, open] = table([])
    expect(heads).toMatch(/^GROUP +TAKEN +LIMIT +WEIGHT +WAITING$/)
    expect(full).toMatch(/^a\\u\{1b\}\[2J +1 +1 +0\.5 +1$/)
    expect(open).toMatch(/^tenant-1 +1 +1\.5 +1$/)
    const titles = /^ +# HOLDER, WAITER +PERMITS GROUP +FOR +ENDS EXPECTED WHY/
    const down = (rows: number) => Array.from({ length: rows }, () => 'down')
    const [still, last, next, holds] = table(down(29))
    expect(still).toBe(heads)
    expect(last).toMatch(/^tenant-29 /)
    expect(next).toMatch(titles)
    expect(holds).toMatch(/^ +holds someone +1 a\\u\{1.* +1s +20s *$/)
    expect(table(down(30))[0]).toMatch(titles)
    expect(table(down(30))[1]).toBe('')
    expect(table(down(31))[1]).toBe(holds)
    const wide = { columns: 130, rows: 24 }
    const rows = table(down(31 + 30), wide)
    expect(rows[0]).toMatch(/ GROUP +FOR +ENDS EXPECTED WHY +OWNER *$/)
    expect(rows[1]).toMatch(/^ +1 waiter-1 +1 a\\u\{1b\}\[2J +3s +9s +12s group +owner-1 *$/)
    expect(rows[2]).toMatch(/^ +2 waiter-2 +1 tenant-1 +3s +9s +12s turn +owner-2 *$/)
  })

  test('/ in an opened lock keeps the groups, holders and waiters that match; the sum stays that of all', () => {
    const within = (keys: string[]) => pressed(grouped, ['return', ...keys])
    const typing = within(['/', ...'tenant-29'])
    expect(shownBy(typing, grouped).at(-1)).toBe('filter: tenant-29 ')
    const shown = shownBy(pressed(grouped, ['return'], typing), grouped)
    expect(shown[3]).toMatch(/by 30 holders, 30 waiting$/)
    expect(shown[5]).toBe('  30 groups, 1 full')
    expect(shown.slice(7, -1).filter(text => text.trim() !== '')).toEqual([
      expect.stringMatching(/^tenant-29 /),
      expect.stringMatching(/HOLDER, WAITER/),
      expect.stringMatching(/^ +holds someone +1 tenant-29/),
      expect.stringMatching(/^ +30 waiter-30 +1 tenant-29/),
    ])
    expect(shownBy(within(['/', 'x', 'return']), grouped).join()).toContain('nothing matches “x”; esc shows all')
    expect(within(['/', 'x', 'return', 'escape'])).toMatchObject({ within: '', opened: { key: 'jobs' } })
    expect(within(['/', 'x', 'return', 'escape', 'escape']).opened).toBeUndefined()
  })

  test('if there is nothing, it says so', () => {
    expect(shownBy(firstView, picture()).join('\n')).toContain('no lock is held')
    const text = shownBy({ ...firstView, filter: 'nobody' }, many).join('\n')
    expect(text).toContain('0 of 50 match “nobody”')
    expect(text).toContain('no lock matches “nobody”; esc shows all 50')
  })
})

/**
 * Tests `baton inspect`, `list`, `top --once` and `release` with locks that have several holders, and with keys that
 * locks of several kinds use at the same time.
 */
import { describe, expect } from 'vitest'
import type { Lease } from '../../../src/index.ts'
import { client, freshKey, test } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'
import { baton } from './baton.ts'

/**
 * Makes a semaphore with five permits and three holders, the first of which has two permits. Two waiters in its queue
 * want two permits each.
 */
async function semaphoreOf(key: string): Promise<Lease[]> {
  const leases: Lease[] = []
  for (const i of [1, 2, 3]) {
    const semaphore = client({ label: `web-${i}` }).semaphore(key, 5)
    leases.push(await semaphore.lock({ permits: i === 1 ? 2 : 1 }))
  }
  for (const i of [4, 5]) {
    const semaphore = client({ label: `web-${i}` }).semaphore(key, 5)
    // This call rejects if the test ends before the waiter's turn. The test ignores the rejection.
    semaphore.lock({ permits: 2, fair: true }).catch(() => {})
    await eventually(async () => (await semaphore.inspect()).waiters.length === i - 3)
  }
  return leases
}

/**
 * Makes a semaphore with two permits: a call of a full group has one, and a call without a group has the other. One more
 * call of each of two groups waits.
 */
async function groupsOf(key: string): Promise<void> {
  const full = { group: 'a\u001b[2J', groupLimit: 1 }
  for (const [i, options] of [full, {}, full, { group: 'b', groupWeight: 2.5 }].entries()) {
    const semaphore = client({ label: `web-${i + 1}` }).semaphore(key, 2)
    const call = semaphore.lock({ ...options, fair: true })
    call.catch(() => {}) // a call that still waits when the test ends rejects then
    await eventually(async () => {
      const { holders, waiters } = await semaphore.inspect()
      return holders.length + waiters.length === i + 1
    })
  }
}

/** Returns the cells of each table in the output. A column begins where its title does. */
function cellsOf(output: string): string[][][] {
  return output
    .trimEnd()
    .split('\n\n')
    .map(table => {
      const [titles = '', ...rest] = table.split('\n')
      const begins = [0, ...[...titles.matchAll(/(?<= {2,})\S/g)].map(({ index }) => index)]
      return [titles, ...rest].map(line => begins.map((at, i) => line.slice(at, begins[i + 1]).trim()))
    })
}

const lines = (output: string) => output.trimEnd().split('\n')

describe('inspect', () => {
  test('a semaphore: how much of it is taken, all holders and the queue', async () => {
    const key = freshKey('quota')
    const leases = await semaphoreOf(key)
    const { code, output, errors } = await baton('inspect', key)
    expect({ code, errors }).toEqual({ code: 0, errors: '' })
    const [head, , titles, ...rest] = lines(output)
    expect(head).toBe(`${key} is a semaphore: 4 of 5 permits taken by 3 holders, 2 waiting`)
    expect(titles).toMatch(/^holder +permits +held for +lease ends in +fencing token +id$/)
    for (const [i, { fencingToken, id }] of leases.entries()) {
      expect(rest[i]).toMatch(
        new RegExp(`^web-${i + 1} +${i === 0 ? 2 : 1} +\\d\\S* +\\d\\S* +${fencingToken} +${id}$`),
      )
    }
    expect(rest[4]).toMatch(/^ +waits +permits +for +expires in$/)
    expect(rest[5]).toMatch(/^1 +web-4 +2 +\d\S* +\d\S*$/)
    expect(rest[6]).toMatch(/^2 +web-5 +2 +/)
    expect(rest).toHaveLength(7)
  })

  test('a semaphore with groups: what each has and may have, and why each waiter waits', async () => {
    const key = freshKey('quota')
    await groupsOf(key)
    const [, groups, holders, queue] = cellsOf((await baton('inspect', key)).output)
    expect(groups).toEqual([
      ['group', 'taken', 'limit', 'weight', 'waiting'],
      ['a\\u{1b}[2J', '1', '1', '1', '1'],
      ['b', '0', '', '2.5', '1'],
      ['–', '1', '', '1', '0'],
    ])
    expect(holders!.map(row => row[2])).toEqual(['group', 'a\\u{1b}[2J', ''])
    expect(queue!.map(row => [row[0], row[1], row[3], row[6]])).toEqual([
      ['', 'waits', 'group', 'why'],
      ['1', 'web-4', 'b', 'permits'],
      ['2', 'web-3', 'a\\u{1b}[2J', 'group'],
    ])
  })

  test('--group and --limit: a part of it, below the sum of all', async () => {
    const key = freshKey('quota')
    await groupsOf(key)
    const [head, groups, queue] = cellsOf((await baton('inspect', key, '--group', 'b')).output)
    expect(head).toEqual([[`${key} is a semaphore: 2 of 2 permits taken by 2 holders, 2 waiting; 3 groups, 1 full`]])
    expect(groups!.slice(1).map(([name]) => name)).toEqual(['b'])
    expect(queue!.slice(1).map(row => row[1])).toEqual(['web-4'])
    const [, first, ...others] = cellsOf((await baton('inspect', key, '--limit', '1')).output)
    expect([first!.length, ...others.map(table => table.length)]).toEqual([2, 2, 2])
    const { output } = await baton('inspect', key, '--group', '', '--json')
    expect(JSON.parse(output)).toMatchObject({
      taken: 2,
      groups: [{ group: '' }],
      holders: [{ label: 'web-2' }],
      waiters: [],
    })
    expect((await baton('inspect', key, '--limit', '0')).code).toBe(64)
  })

  test('a read-write lock: its readers and writers, and who waits for what', async () => {
    const key = freshKey('cache')
    const [one, two] = [client({ label: 'one' }).readWrite(key), client({ label: 'two' }).readWrite(key)]
    const leases = [await one.read.lock(), await two.read.lock()]
    const writing = client({ label: 'three' }).readWrite(key).write.lock({ fair: true })
    await eventually(async () => (await one.inspect()).waiters.length === 1)
    const read = (await baton('inspect', key)).output
    expect(read).toContain(`${key} is a read-write lock: held by 2 readers, 1 waiting\n\nholder  mode  held for `)
    expect(read).toMatch(/\none +read +\d.*\ntwo +read +\d.*\n[\s\S]*\n1 +three +write +\d/)
    for (const lease of leases) await lease.release()
    await writing
    const { output } = await baton('inspect', key)
    expect(output).toContain(`${key} is a read-write lock: held by a writer\n`)
    expect(output).toMatch(/\nthree +write +\d/)
    expect((await baton('list', key)).output).toMatch(new RegExp(`\n${key} +read-write lock +write three +\\d`))
    const state = JSON.parse((await baton('inspect', key, '--json')).output)
    expect(state).toMatchObject({ kind: 'readWrite', label: 'three', holders: [{ mode: 'write' }] })
  })
})

describe('list and top --once', () => {
  test('top shows the holders of each, and what waiters want', async () => {
    const key = freshKey('quota')
    await semaphoreOf(key)
    const [figures, table, holders, queue] = (await baton('top', '--once', `${key}*`)).output.trimEnd().split('\n\n')
    expect(figures).toMatch(/^1 held {2}1 with a queue {2}2 waiting, longest \S+$/)
    expect(table).toMatch(new RegExp(`\n${key} +semaphore +4/5 web-1 \\+2 +\\S+ +\\S+ +2 +\\S+$`))
    const row = (...cells: string[]) =>
      expect.stringMatching(new RegExp(`^${[key, 'semaphore', ...cells].join(' +')}$`))
    expect(holders!.split('\n').slice(1)).toEqual(
      ['2', '1', '1'].map((permits, i) => row(`web-${i + 1}`, permits, '\\S+', '\\S+')),
    )
    expect(queue!.split('\n').slice(1)).toEqual(
      ['1', '2'].map((place, i) => row(place, `web-${i + 4}`, '2', '\\S+', '\\S+')),
    )
  })
})

describe('groups', () => {
  test('top --once shows what inspect does, and list how many there are', async () => {
    const key = freshKey('quota')
    await groupsOf(key)
    const [, table, groups, holders, queue] = cellsOf((await baton('top', '--once', `${key}*`)).output)
    expect(table!.map(row => row.at(-1))).toEqual(['groups', '3'])
    expect(groups!.map(row => row[2])).toEqual(['group', 'a\\u{1b}[2J', 'b', '–'])
    expect(holders!.map(row => row[4])).toEqual(['group', 'a\\u{1b}[2J', ''])
    expect(queue!.map(row => [row[5], row[8]])).toEqual([
      ['group', 'why'],
      ['b', 'permits'],
      ['a\\u{1b}[2J', 'group'],
    ])
    const [list] = cellsOf((await baton('list', key)).output)
    expect(list!.map(row => row.at(-1))).toEqual(['groups', '3'])
  })
})

describe('release', () => {
  const taken = async (key: string) => (await client().semaphore(key, 1).inspect()).taken

  test('takes the mutex, and says how to take the other held locks', async ({ key }) => {
    await semaphoreOf(key)
    expect((await baton('release', '--force', '--yes', key)).output).toBe(
      `${key} is free already; the semaphore of the same key is held: to release that lock, give --kind semaphore\n`,
    )
    expect(await taken(key)).toBe(4)
    await client().lock(key)
    expect((await baton('release', '--force', '--yes', key)).output).toBe(`${key} is released\n`)
    expect(await taken(key)).toBe(4)
  })

  test('--kind semaphore: from all its holders, and the waiters are next', async ({ key }) => {
    const leases = await semaphoreOf(key)
    const asked = await baton('release', '--force', key, '--kind', 'semaphore')
    expect(asked).toMatchObject({ code: 64, output: '' })
    expect(asked.errors).toMatch(
      /is held by web-1 and 2 others, for .*; nothing was released; to confirm without a terminal, give --yes/,
    )
    expect((await baton('release', '--force', '--yes', key, '--kind', 'semaphore')).output).toBe(`${key} is released\n`)
    await eventually(() => leases.every(({ signal }) => signal.aborted))
    const { holders } = await client().semaphore(key, 1).inspect()
    expect(holders).toMatchObject([{ label: 'web-4' }, { label: 'web-5' }])
  })

  test('--holder: from one holder, of any kind of lock', async ({ key }) => {
    const [first, second] = await semaphoreOf(key)
    const lease = await client({ label: 'me' }).lock(key)
    const asked = await baton('release', '--force', key, '--holder', second!.id)
    expect(asked).toMatchObject({ code: 64, output: '' })
    expect(asked.errors).toMatch(
      /is held by web-2, for .*; nothing was released; to confirm without a terminal, give --yes/,
    )
    const take = async (id: string) => (await baton('release', '--force', '--yes', key, '--holder', id)).output
    expect(await take(second!.id)).toBe(`${key} was taken from web-2\n`)
    await eventually(() => second!.signal.aborted)
    expect([first!.held, lease.held]).toEqual([true, true])
    expect(await take(second!.id)).toBe(`no holder of ${key} has that id; baton inspect shows the ids of the holders\n`)
    expect(await take(lease.id)).toBe(`${key} was taken from me\n`)
    await eventually(() => lease.signal.aborted)
    expect(first!.held).toBe(true)
  })
})

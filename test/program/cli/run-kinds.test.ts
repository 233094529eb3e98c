/**
 * Tests `baton run` with semaphores, read-write locks, and several locks at once: which commands run side by side, and
 * what a command receives.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { client, freshKey, test } from '../../kit/redis.ts'
import { emptyFolder } from '../../kit/temp.ts'
import { eventually } from '../../kit/time.ts'
import { baton, begun, end, STARTUP, start, stays } from './baton.ts'

/** Runs commands that record their beginning and end. `most` is the largest number that ran at the same time. */
async function journalled(...lines: readonly (readonly string[])[]) {
  const journal = join(await emptyFolder(), 'journal')
  const note = (what: string) => `echo ${what} "$BATON_FENCING_TOKEN" >>'${journal}'`
  const script = `${note('begun')}; sleep 0.3; ${note('ended')}`
  const ends = await Promise.all(lines.map(line => baton('run', ...line, '--', 'sh', '-c', script)))
  expect(ends).toEqual(lines.map(() => ({ code: 0, output: '', errors: '' })))
  const noted = (await readFile(journal, 'utf8')).trimEnd().split('\n')
  let [running, most] = [0, 0]
  for (const line of noted) {
    running += line.startsWith('begun') ? 1 : -1
    most = Math.max(most, running)
  }
  const tokens = noted.filter(line => line.startsWith('begun')).map(line => Number(line.split(' ')[1]))
  return { most, tokens }
}

describe('--permits', () => {
  test('I1: of five processes two work at a time', { timeout: 40_000 }, async () => {
    const key = freshKey('quota')
    const line = [key, '--permits', '2']
    const { most, tokens } = await journalled(line, line, line, [...line, '--fair'], [...line, '--fair'])
    expect(most).toBe(2)
    expect(new Set(tokens).size).toBe(5)
    expect(await client().semaphore(key, 2).inspect()).toMatchObject({ taken: 0, waiters: [] })
  })

  test('--take: takes as many permits as it says, and waits until they are free', { timeout: 40_000 }, async () => {
    const key = freshKey('quota')
    const semaphore = client().semaphore(key, 3)
    const two = await begun(start(['run', key, '--permits', '3', '--take', '2', '--label', 'two', '--', ...stays]))
    expect(await semaphore.inspect()).toMatchObject({ permits: 3, taken: 2, holders: [{ label: 'two', permits: 2 }] })
    const next = start(['run', key, '--permits', '3', '--take', '2', '--fair', '--', ...stays])
    await eventually(async () => (await semaphore.inspect()).waiters.length === 1, STARTUP)
    const none = await baton('run', key, '--permits', '3', '--take', '2', '--timeout', '2s', '--', 'true')
    expect(none).toMatchObject({ code: 124, output: '' })
    expect(none.errors).toMatch(
      /^baton: semaphore .* was not granted within .*; 2 of 3 permits are taken by two for .*\n$/,
    )
    await end(two)
    await end(await begun(next))
  })
})

describe('--read and --write', () => {
  test('I1: a writer works alone', { timeout: 40_000 }, async () => {
    const write = [freshKey('cache'), '--write']
    expect((await journalled(write, write, [...write, '--fair'])).most).toBe(1)
  })

  test('readers work side by side, and callers behind a waiting writer wait', { timeout: 60_000 }, async () => {
    const key = freshKey('cache')
    const [read, write] = [
      [key, '--read'],
      [key, '--write'],
    ]
    const lock = client().readWrite(key)
    const readers = [await begun(start(['run', ...read, '--label', 'r1', '--', ...stays]))]
    readers.push(await begun(start(['run', ...read, '--label', 'r2', '--', ...stays])))
    const { holders } = await lock.inspect()
    expect(holders).toMatchObject([
      { label: 'r1', mode: 'read' },
      { label: 'r2', mode: 'read' },
    ])
    const refused = await baton('run', ...write, '--timeout', '0', '--', 'true')
    expect(refused).toMatchObject({ code: 124, output: '' })
    const writer = start(['run', ...write, '--fair', '--label', 'w', '--', ...stays])
    await eventually(async () => (await lock.inspect()).waiters.length === 1, STARTUP)
    expect((await baton('run', ...read, '--timeout', '0', '--', 'true')).code).toBe(124)
    for (const reader of readers) await end(reader)
    await begun(writer)
    expect(await lock.inspect()).toMatchObject({ holders: [{ label: 'w', mode: 'write' }] })
    expect((await baton('run', ...read, '--timeout', '0', '--', 'true')).code).toBe(124)
    await end(writer)
    expect((await baton('run', ...read, '--timeout', '0', '--', 'true')).code).toBe(0)
  })
})

describe('--and', () => {
  test('all of them or none, in whatever order they are named, without a deadlock', { timeout: 60_000 }, async () => {
    const [a, b, c] = [freshKey('a'), freshKey('b'), freshKey('c')]
    const [forth, back] = [
      [a, '--and', b, '--and', c],
      [c, '--and', b, '--and', a],
    ]
    const { most } = await journalled(forth, back, [...forth, '--fair'], [...back, '--fair'], forth, back)
    expect(most).toBe(1)
    for (const key of [a, b, c]) expect(await client().isLocked(key)).toBe(false)
  })

  test('the command receives the first key, its token, and the tokens of all', async () => {
    // The first key on the command line is the last one to be taken, because keys are taken in sorted order.
    const [first, second] = [`z:${freshKey()}`, `a:${freshKey()} "two"`]
    const print = `echo "$BATON_KEY"; echo "$BATON_FENCING_TOKEN"; echo "$BATON_FENCING_TOKENS"`
    const { code, output } = await baton('run', first, '--and', second, '--and', first, '--', 'sh', '-c', print)
    const [key, token, tokens] = output.split('\n')
    expect({ code, key }).toEqual({ code: 0, key: first })
    const all = JSON.parse(tokens!)
    expect(Object.keys(all).toSorted()).toEqual([second, first])
    expect(all[first]).toBe(Number(token))
    expect(all[second]).toBeGreaterThan(1_000_000)
  })

  test('a signal ends the wait, and leaves nothing behind', async ({ locks }) => {
    const [free, held] = [`a:${freshKey()}`, `b:${freshKey()}`]
    await locks.lock(held)
    const running = start(['run', free, '--and', held, '--fair', '--', ...stays])
    await eventually(async () => (await locks.inspect(held)).waiters.length === 1, STARTUP)
    running.child.kill('SIGTERM')
    expect(await running.ended).toEqual({ code: 143, output: '', errors: '' })
    expect((await locks.inspect(held)).waiters).toEqual([])
    expect(await locks.isLocked(free)).toBe(false)
  })

  test('I8: losing one ends the command, and the others are released', async ({ locks }) => {
    const [a, b] = [freshKey('a'), freshKey('b')]
    const running = await begun(start(['run', a, '--and', b, '--', ...stays]))
    expect(await locks.forceRelease(b)).toBe(true)
    const { code, errors } = await running.ended
    expect(code).toBe(75)
    expect(errors).toMatch(new RegExp(`${b}" was lost: .*; baton ends the command\n`))
    expect(await locks.isLocked(a)).toBe(false)
  })
})

test('a command under a mutex also finds its token by its key, but not the tokens of an enclosing command', async () => {
  const [outer, inner] = [freshKey('outer'), freshKey('inner')]
  const print = `echo "$BATON_KEY $BATON_FENCING_TOKENS $BATON_FENCING_TOKEN"`
  const { ended } = start(['run', inner, '--', 'sh', '-c', print], {
    BATON_KEY: outer,
    BATON_FENCING_TOKENS: '{"x":1}',
  })
  const { output } = await ended
  const [key, tokens, token] = output.trim().split(' ')
  expect({ key, tokens }).toEqual({ key: inner, tokens: JSON.stringify({ [inner]: Number(token) }) })
})

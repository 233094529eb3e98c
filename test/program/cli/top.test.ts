/**
 * Tests `baton top` without a terminal: its snapshots, and the options that it refuses.
 * test/program/terminal/top.test.ts tests the live view.
 */
import { expect, test } from 'vitest'
import { client, freshKey } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'
import { baton } from './baton.ts'

/** Takes two locks. One of them has a queue of two waiters. */
async function twoLocks(name: string) {
  const [holder, first, second] = ['the holder', 'the first', 'the second'].map(label => client({ label }))
  const lease = await holder!.lock(`${name}:b`)
  await client({ label: 'another' }).lock(`${name}:a`)
  for (const [i, waiter] of [first!, second!].entries()) {
    waiter.lock(`${name}:b`, { fair: true }).catch(() => {})
    await eventually(async () => (await holder!.inspect(`${name}:b`)).waiters.length === i + 1)
  }
  return lease
}

test('--once prints every lock, and every queue', async () => {
  const name = freshKey('top')
  await twoLocks(name)
  const { code, output, errors } = await baton('top', '--once', `${name}:*`)
  expect({ code, errors }).toEqual({ code: 0, errors: '' })
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that there is none
  expect(output).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/)
  const [figures, , head, b, a, , queueHead, first, second, ...rest] = output.trimEnd().split('\n')
  expect(figures).toMatch(/^2 held {2}1 with a queue {2}2 waiting, longest \S+$/)
  expect(head).toMatch(/^lock +holder +held for +lease ends in +queued +longest wait$/)
  expect(b).toMatch(new RegExp(`^${name}:b +the holder +\\S+ +\\S+ +2 +\\S+$`))
  expect(a).toMatch(new RegExp(`^${name}:a +another +\\S+ +\\S+$`))
  expect(queueHead).toMatch(/^lock +place +waits +for +expires in$/)
  expect(first).toMatch(new RegExp(`^${name}:b +1 +the first +\\S+ +\\S+$`))
  expect(second).toMatch(new RegExp(`^${name}:b +2 +the second +\\S+ +\\S+$`))
  expect(rest).toEqual([])
})

test('--sort', async () => {
  const name = freshKey('top')
  await twoLocks(name)
  const { output } = await baton('top', '--once', '--sort', 'lock', `${name}:*`)
  expect(output.indexOf(`${name}:a`)).toBeLessThan(output.indexOf(`${name}:b`))
  const { code, errors } = await baton('top', '--once', '--sort', 'size')
  expect(code).toBe(64)
  expect(errors).toContain('lock, held, left, queue, longest')
})

test('--json is for scripts, and implies --once', async () => {
  const name = freshKey('top')
  const { fencingToken } = await twoLocks(name)
  const { code, output } = await baton('top', '--json', `${name}:*`)
  expect(code).toBe(0)
  expect(JSON.parse(output)).toMatchObject({
    held: 2,
    queued: 1,
    waiters: 2,
    longestWait: expect.any(Number),
    locks: [
      {
        key: `${name}:b`,
        label: 'the holder',
        fencingToken,
        heldFor: expect.any(Number),
        longestWait: expect.any(Number),
        waiters: [{ label: 'the first' }, { label: 'the second' }],
      },
      { key: `${name}:a`, waiters: [] },
    ],
  })
})

test('nothing is held', async () => {
  expect(await baton('top', '--once', freshKey())).toEqual({ code: 0, output: 'no lock is held\n', errors: '' })
  expect(JSON.parse((await baton('top', '--json', freshKey())).output)).toMatchObject({ held: 0, locks: [] })
})

test('names and labels of others are shown, not obeyed', async () => {
  const key = freshKey('top\u001b[2J\r\n\u202e\u009b')
  await client({ label: 'l\u0007' }).lock(key)
  const pattern = `${key.slice(0, 3)}*${key.slice(-12)}`
  const { output } = await baton('top', '--once', pattern)
  expect(output).toContain('top\\u{1b}[2J\\u{d}\\u{a}\\u{202e}\\u{9b}')
  expect(output).toContain('l\\u{7}')
  const json = (await baton('top', '--json', pattern)).output
  expect(json).toContain('\\u202e\\u009b')
  expect(JSON.parse(json).locks[0].key).toBe(key)
})

test('without a terminal it requires --once', async () => {
  const { code, output, errors } = await baton('top')
  expect({ code, output }).toEqual({ code: 64, output: '' })
  expect(errors).toBe('baton: top needs a terminal; give --once to print one snapshot without a terminal\n')
})

test.each([
  ['an interval that is none', 64, ['--interval', '5']],
  ['an interval that is too short', 64, ['--interval', '1ms']],
  ['a pattern that is none', 64, ['--once', '[b-a]']],
  ['no Redis', 69, ['--once', '--url', 'redis://127.0.0.1:1']],
])('%s: exit code %i', async (_, expected, args) => {
  const { code, output, errors } = await baton('top', ...args)
  expect({ code, output }).toEqual({ code: expected, output: '' })
  expect(errors).toMatch(/^[^\n]+\n$/)
})

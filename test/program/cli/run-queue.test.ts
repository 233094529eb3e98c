/** Tests what `baton run` does with options of the queue: `--busy-ok`, `--max-waiters`, `--min-hold` and `--slots`. */
import { expect } from 'vitest'
import { client, freshKey, test } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'
import { baton, start } from './baton.ts'

const prints = ['sh', '-c', 'echo "$BATON_SLOT"']
const quiet = { code: 0, output: '', errors: '' }

test('--busy-ok: another caller has the lock, or the queue is full: exit 0, nothing printed; Redis away: 69', async () => {
  const locks = client()
  const key = freshKey()
  const held = await locks.lock(key)
  const run = (...options: string[]) => baton('run', key, ...options, '--', 'echo', 'ran')
  expect(await run('--busy-ok')).toEqual(quiet)
  expect(await run('--busy-ok', '--timeout', '200ms')).toEqual(quiet)
  expect(await run('--busy-ok', '--timeout', '60s', '--max-waiters', '0')).toEqual(quiet)
  const full = await run('--max-waiters', '0')
  expect(full).toMatchObject({ code: 124, output: '' })
  expect(full.errors).toMatch(/0 callers wait already.*the command was not run/)
  expect((await run('--busy-ok', '--url', 'redis://127.0.0.1:1')).code).toBe(69)
  await held.release()
  expect(await run('--busy-ok')).toEqual({ ...quiet, output: 'ran\n' })
})

test('--min-hold: the lock stays taken after the command and after baton, so one of several machines runs it', async () => {
  const key = freshKey()
  const run = () => baton('run', key, '--busy-ok', '--min-hold', '60s', '--', 'echo', 'ran')
  const ends = await Promise.all([run(), run(), run()])
  expect(ends.map(({ output }) => output).join('')).toBe('ran\n')
  expect(ends.every(({ code, errors }) => code === 0 && errors === '')).toBe(true)
  expect(await run()).toEqual(quiet)
  expect((await client().inspect(key)).ttl).toBeLessThanOrEqual(60_000)
})

test('--slots: $BATON_SLOT has the numbers; without it, the command has none', async ({ key }) => {
  const semaphore = client().semaphore(key, 4)
  await semaphore.lock({ slots: true })
  const run = (...options: string[]) => baton('run', key, '--permits', '4', ...options, '--', ...prints)
  expect(await run('--slots', '--take', '2')).toEqual({ ...quiet, output: '1,2\n' })
  process.env['BATON_SLOT'] = '7'
  expect(await run()).toEqual({ ...quiet, output: '\n' })
  delete process.env['BATON_SLOT']
  const running = start(['run', key, '--permits', '4', '--slots', '--', 'sleep', '60'])
  await eventually(async () => (await semaphore.inspect()).holds === 2, 20_000)
  expect((await baton('inspect', key)).output).toMatch(/1 #0\b.*1 #1\b/s)
  running.child.kill()
  await running.ended
})

test.each([
  [['--slots'], /--slots needs --permits/],
  [['--group', 'a'], /--group needs --permits/],
  [['--group-limit', '2'], /--group-limit needs --group/],
  [['--permits', '2', '--group-weight', '2'], /--group-weight needs --group/],
  [['--permits', '2', '--group', 'a', '--group-weight', 'x'], /--group-weight .*a number above 0/],
  [['--fair', '--fair-after', '5s'], /'--fair' cannot be used with option '--fair-after <time>'/],
  [
    ['--fair-after', '5s', '--max-waiters', '3'],
    /'--max-waiters <n>' cannot be used with option '--fair-after <time>'/,
  ],
  [['--permits', '2', '--group', 'a', '--fair-after', '5s'], /'--group <name>' cannot be used with .*--fair-after/],
  [
    ['--fair-after', '5s', '--timeout', '0s'],
    /--fair-after has no effect with --timeout 0, because baton does not wait/,
  ],
  [['--busy-ok', '--max-waiters', '3'], /--max-waiters has no effect with --busy-ok, because baton does not wait/],
  [['--max-waiters', '-1'], /whole number/],
  [['--min-hold', '60'], /a time with its unit/],
])('%j is refused, with exit code 64', async (options, why) => {
  const { code, errors } = await baton('run', freshKey(), ...options, '--', 'true')
  expect({ code, errors }).toEqual({ code: 64, errors: expect.stringMatching(why) })
})

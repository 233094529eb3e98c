/** Tests `baton inspect`, `list` and `release`: what they print, for people and for scripts. */
import { describe, expect } from 'vitest'
import { client, freshKey, redisUrl, test } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'
import { baton } from './baton.ts'

async function heldAndQueued(key: string) {
  const [holder, waiter] = [client({ label: 'the holder' }), client({ label: 'the waiter' })]
  const lease = await holder.lock(key)
  const wait = waiter.lock(key, { fair: true })
  wait.catch(() => {}) // this call rejects if the test ends before the waiter's turn
  await eventually(async () => (await holder.inspect(key)).waiters.length === 1)
  return { holder, lease, wait }
}

describe('inspect', () => {
  test('a lock that is held, and its queue', async ({ key }) => {
    const { lease } = await heldAndQueued(key)
    const { code, output, errors } = await baton('inspect', key)
    expect({ code, errors }).toEqual({ code: 0, errors: '' })
    expect(output).toContain(`${key} is held by the holder\n`)
    expect(output).toContain(`fencing token  ${lease.fencingToken}\n`)
    expect(output).toMatch(/held for {7}\d+(\.\d)?m?s/)
    expect(output).toMatch(/^1 {2}the waiter {2}\S+ {2,}\S+$/m)
  })

  test('--json prints what the library returns', async ({ key }) => {
    const { holder } = await heldAndQueued(key)
    const shown = JSON.parse((await baton('inspect', key, '--json')).output)
    const { key: name, owner, label, holds, fencingToken } = await holder.inspect(key)
    expect(shown).toMatchObject({ key: name, locked: true, owner, label, holds, fencingToken })
    expect(shown.waiters).toMatchObject([{ label: 'the waiter', position: 1 }])
  })
})

describe('options that every command has', () => {
  test('may come before the command; those after it override them', async () => {
    const [prefix, key] = [freshKey('prefix'), freshKey()]
    await client({ prefix, label: 'me' }).lock(key)
    for (const args of [
      ['--prefix', prefix, 'list'],
      [`--prefix=${prefix}`, '--url', redisUrl(), 'list'],
      ['--url=redis://127.0.0.1:1', '--prefix', 'other', 'list', '--prefix', prefix, '--url', redisUrl()],
    ]) {
      const { code, output } = await baton(...args)
      expect(code).toBe(0)
      expect(output).toContain(`${key}  me`)
    }
    expect((await baton('--url', 'redis://127.0.0.1:1', 'list')).code).toBe(69)
    const { code, output } = await baton('--prefix', prefix, 'run', key, '--timeout', '0', '--', 'true')
    expect({ code, output }).toEqual({ code: 124, output: '' })
  })

  test('are in the help of the program', async () => {
    expect((await baton('--help')).output).toMatch(/--url <url>.*--prefix <text>/s)
  })
})

describe('list', () => {
  test('shows held and queued locks that match', async () => {
    const name = freshKey('list')
    await heldAndQueued(`${name}:b`)
    await client({ label: 'another' }).lock(`${name}:a`)
    const { code, output } = await baton('list', `${name}:*`)
    expect(code).toBe(0)
    const [head, a, b, ...rest] = output.trimEnd().split('\n')
    expect(head).toMatch(/^lock +holder +held for +lease ends in +queued$/)
    expect(a).toMatch(new RegExp(`^${name}:a +another +\\S+ +\\S+ +0$`))
    expect(b).toMatch(new RegExp(`^${name}:b +the holder +\\S+ +\\S+ +1$`))
    expect(rest).toEqual([])
    const states = JSON.parse((await baton('list', `${name}:*`, '--json')).output)
    expect(states.map(({ key }: { key: string }) => key)).toEqual([`${name}:a`, `${name}:b`])
  })

  test('none', async () => {
    expect(await baton('list', freshKey())).toEqual({ code: 0, output: 'no lock is held\n', errors: '' })
    expect((await baton('list', freshKey(), '--json')).output).toBe('[]\n')
  })

  test('a name that would move the cursor is shown, not obeyed', async () => {
    const key = freshKey('odd \u001b[2J\r\n\u202e')
    await client({ label: 'l\u0007' }).lock(key)
    const { output } = await baton('list', `${key.slice(0, 4)}*`)
    expect(output).toContain('\\u{1b}[2J\\u{d}\\u{a}\\u{202e}')
    expect(output).toContain('l\\u{7}')
  })
})

describe('release', () => {
  test('--force --yes takes it from its holder, and the next waiter gets it', async ({ key }) => {
    const { lease, wait } = await heldAndQueued(key)
    expect(await baton('release', '--force', '--yes', key)).toEqual({
      code: 0,
      output: `${key} is released\n`,
      errors: '',
    })
    expect((await wait).fencingToken).toBeGreaterThan(lease.fencingToken)
    await eventually(() => lease.signal.aborted)
  })

  test('without --yes it asks, and does nothing if it cannot ask', async ({ key }) => {
    const { lease } = await heldAndQueued(key)
    const { code, output, errors } = await baton('release', '--force', key)
    expect({ code, output }).toEqual({ code: 64, output: '' })
    expect(errors).toMatch(
      /is held by the holder, for .*; nothing was released; to confirm without a terminal, give --yes/,
    )
    expect(lease.held).toBe(true)
  })
})

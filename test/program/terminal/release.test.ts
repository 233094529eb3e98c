/** Tests that `baton release` asks for confirmation and follows the answer. */
import { expect } from 'vitest'
import { client, freshKey, redisUrl, test } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'
import { batonInTerminal } from './tmux.ts'

const asking = async (key: string) => {
  const terminal = await batonInTerminal(['release', '--force', key], { columns: 120, env: { REDIS_URL: redisUrl() } })
  await terminal.eventually(`${key} is held by the holder, for `)
  await terminal.eventually('Take the lock? (y/N)')
  return terminal
}

test.each([['n'], ['Enter'], ['C-c']])('%s: nothing is released', async answer => {
  const key = freshKey()
  const lease = await client({ label: 'the holder' }).lock(key)
  const terminal = await asking(key)
  await terminal.press(...(answer === 'n' ? ['n', 'Enter'] : [answer]))
  expect(await terminal.exitCode()).toBe(1)
  expect(await terminal.screen()).toMatch(/\nbaton: you did not confirm, so nothing was released$/)
  expect(lease.held).toBe(true)
})

test('y: it is taken', async ({ key }) => {
  const lease = await client({ label: 'the holder' }).lock(key)
  const terminal = await asking(key)
  await terminal.press('y', 'Enter')
  expect(await terminal.exitCode()).toBe(0)
  expect(await terminal.screen()).toMatch(new RegExp(`\\n${key} is released$`))
  await eventually(() => lease.signal.aborted)
})

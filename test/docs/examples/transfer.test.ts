/** examples/transfer.ts: four processes make transfers between ten accounts. Each transfer locks two of them. */
import { expect, test } from 'vitest'
import { example, runNode } from '../../kit/program.ts'
import { Scene } from './scene.ts'

const scene = new Scene()

/** Runs the example, which must succeed. Returns what it prints. */
async function run(...args: string[]): Promise<string[]> {
  const { code, output, errors } = await runNode(example('transfer.ts', ...args), { env: { REDIS_URL: scene.url } })
  expect(code, errors).toBe(0)
  return output.trim().split('\n')
}

/** Returns the balances that follow from the recorded transfers. Fails if any of the transfers overdraws an account. */
async function byTheBook(count: number): Promise<Record<string, number>> {
  const transfers = await scene.redis.lrange('example:transfers', 0, -1)
  expect(transfers).toHaveLength(count)
  const balances: Record<string, number> = {}
  for (const transfer of transfers) {
    const [from, to, amount] = transfer.split(' ') as [string, string, string]
    balances[from] = (balances[from] ?? 1_000) - Number(amount)
    balances[to] = (balances[to] ?? 1_000) + Number(amount)
    expect(balances[from], transfer).toBeGreaterThanOrEqual(0)
  }
  return balances
}

async function balances(): Promise<Record<string, number>> {
  const accounts = Object.entries(await scene.redis.hgetall('example:accounts'))
  return Object.fromEntries(accounts.map(([name, balance]) => [name, Number(balance)]))
}

test('400 transfers: each is made, no money appears or disappears, and no caller waits for ever', async () => {
  expect(await run('100')).toEqual(['10 accounts have 10000', '400 transfers by 4 processes', '10 accounts have 10000'])
  expect(await balances()).toEqual(await byTheBook(400))
  await scene.expectNothingLeft()
}, 100_000)

test('without the locks the sum changes', async () => {
  const [before, made, after] = await run('--no-lock', '100')
  expect([before, made]).toEqual(['10 accounts have 10000', '400 transfers by 4 processes'])
  expect(after).toMatch(/^10 accounts have \d+$/)
  expect(after).not.toBe(before)
}, 100_000)

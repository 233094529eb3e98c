/**
 * Four processes make transfers between accounts at the same time. Each transfer locks both of its accounts, or
 * neither.
 *
 * A transfer reads both balances and writes both. The two accounts of a transfer stand for two independent systems, so
 * no transaction covers both. If two transfers touch the same account at the same time, one overwrites the other's
 * balance, and money appears or disappears. `--no-lock` shows this.
 *
 * One lock per account prevents that. But transfers that take the two locks one after the other soon deadlock: one
 * process holds A and waits for B, while another holds B and waits for A. `locks.all` always takes locks in the same
 * order, whatever the order of its arguments.
 *
 *     npx tsx examples/transfer.ts 2500     2,500 transfers by each process
 *
 * A process that is paused for longer than its lease may still write late. Fencing tokens refuse such a write:
 * `lease.fencingTokens` has a token for each account, and fenced-write.ts shows how a database compares them.
 */
import { fork } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Redis } from 'ioredis'
import { LockClient } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379', ROLE } = process.env
const { values, positionals } = parseArgs({ allowPositionals: true, options: { 'no-lock': { type: 'boolean' } } })
const [count = '250'] = positionals

const PROCESSES = 4
/** How many transfers a process makes at a time. */
const AT_A_TIME = 8
const names = ['Ada', 'Alan', 'Barbara', 'Donald', 'Edsger', 'Grace', 'Leslie', 'Margaret', 'Niklaus', 'Tony']
/** The Redis keys. `accounts` has the balance of each name. `book` has one line for each transfer. */
const accounts = 'example:accounts'
const book = 'example:transfers'

const redis = new Redis(REDIS_URL)
redis.on('error', error => console.error(`Redis: ${error.message}`))

/**
 * Moves the amount: reads both balances, then writes both. This is correct only while no other transfer uses these
 * accounts.
 */
async function move(from: string, to: string, amount: number, signal?: AbortSignal): Promise<void> {
  const [has, receives] = (await redis.hmget(accounts, from, to)).map(Number) as [number, number]
  const moved = Math.min(amount, has) // no balance becomes negative
  signal?.throwIfAborted() // a lock was lost, so the balances may be out of date
  await redis.hset(accounts, from, has - moved, to, receives + moved)
  await redis.rpush(book, `${from} ${to} ${moved}`)
}

/** Makes transfers. Each of the four processes runs this function. */
async function teller(): Promise<void> {
  await using locks = new LockClient(redis)
  let left = Number(count)

  async function transfer(): Promise<void> {
    const payer = randomInt(names.length)
    const payee = (payer + randomInt(1, names.length)) % names.length
    const [from, to] = [names[payer]!, names[payee]!]
    const amount = randomInt(1, 500)
    if (values['no-lock']) return move(from, to, amount)
    const both = locks.all([`example:account:${from}`, `example:account:${to}`])
    // If two transfers ever waited for each other, this timeout would end the wait, and the program would fail.
    await both.using({ timeout: 30_000 }, ({ signal }) => move(from, to, amount, signal))
  }

  async function window(): Promise<void> {
    while (left-- > 0) await transfer()
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, window))
}

async function total(): Promise<number> {
  const balances = await redis.hvals(accounts)
  return balances.reduce((sum, balance) => sum + Number(balance), 0)
}

/** Opens the accounts, and starts the four processes. */
async function bank(): Promise<void> {
  await redis.del(book)
  await redis.hset(accounts, Object.fromEntries(names.map(name => [name, 1_000])))
  console.log(`${names.length} accounts have ${await total()}`)

  const options = { env: { ...process.env, ROLE: 'teller' } }
  const tellers = Array.from({ length: PROCESSES }, () =>
    fork(fileURLToPath(import.meta.url), process.argv.slice(2), options),
  )
  const ends = await Promise.all(tellers.map(child => once(child, 'exit')))
  if (ends.some(([code]) => code !== 0)) throw new Error('a process has failed')

  console.log(`${await redis.llen(book)} transfers by ${PROCESSES} processes`)
  console.log(`${names.length} accounts have ${await total()}`)
}

try {
  await (ROLE === 'teller' ? teller() : bank())
} finally {
  redis.disconnect()
}

/** Runs clients of the built library in `dist/`. `crew.ts` sends this process messages that say what to do. */
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { Cluster } from 'ioredis'
import type { Lease, LockClient } from '../../src/index.ts'
import type { Op, Order, Orders, Reply } from './orders.ts'

/** How many calls may be under way at the same time. */
const BATCH = 500
const STATS = 100

const library = new URL('../../dist/src/index.js', import.meta.url).href
const baton: typeof import('../../src/index.ts') = await import(library)

const clients: LockClient[] = []
const leases: Lease[] = []
/**
 * The most CPU that this process used between two consecutive readings, in µs. A long turn of the event loop delays the
 * next reading, so this is close to the CPU of the longest turn.
 */
let longestTurn = 0
let watching: NodeJS.Timeout | undefined
let looked = process.cpuUsage()
let lost = 0
let parked = 0

function clientOf(i: number): LockClient {
  return clients[i % clients.length]!
}

async function inBatches(count: number, make: (i: number) => Promise<unknown>): Promise<void> {
  for (let made = 0; made < count; made += BATCH) {
    await Promise.all(Array.from({ length: Math.min(BATCH, count - made) }, (_, i) => make(made + i)))
  }
}

const done: { readonly [O in Op]: (order: Order<O>) => Promise<ReturnType<Orders[O]>> | ReturnType<Orders[O]> } = {
  async open({ url, cluster, clients: count }) {
    await inBatches(count, async () => {
      const client = new baton.LockClient(cluster ? new Cluster([url], { lazyConnect: true }) : url)
      client.on('lost', () => {
        lost += 1
      })
      client.on('waiting', () => {
        parked += 1
      })
      client.on('error', error => console.error(error))
      clients.push(client)
      await (await client.lock(`warm ${clients.length}`)).release()
    })
  },
  async hold({ prefix, count }) {
    await inBatches(count, async i => {
      leases.push(await clientOf(i).lock(`${prefix} ${i}`))
    })
  },
  async reenter({ prefix, count }) {
    await inBatches(count, async () => {
      leases.push(await clientOf(0).lock(prefix, { owner: 'me' }))
    })
  },
  async releaseAll() {
    const all = leases.splice(0)
    await inBatches(all.length, i => all[i]!.release())
  },
  async park({ prefix, count, keys, fair }) {
    const target = parked + count
    const settings = fair ? { fair } : { fairAfter: Number.POSITIVE_INFINITY }
    for (let i = 0; i < count; i++) {
      clientOf(i)
        .lock(`${prefix} ${i % keys}`, settings)
        .then(
          lease => leases.push(lease),
          () => {},
        )
      if (i % BATCH === BATCH - 1) while (target - count + i + 1 - parked > BATCH) await turn()
    }
    while (parked < target) await sleep(20)
  },
  async cycle({ prefix, count, callers, keys, once }) {
    let begun = 0
    const caller = async () => {
      for (let i = begun++; i < count; i = begun++) {
        const [client, key] = [clientOf(i), `${prefix} ${i % keys}`]
        await (await (once ? client.tryLock(key) : client.lock(key)))!.release()
      }
    }
    await Promise.all(Array.from({ length: callers }, caller))
  },
  stats() {
    const before = process.cpuUsage()
    for (let i = 0; i < STATS; i++) clients[0]!.stats()
    return spentSince(before) / STATS
  },
  async close() {
    const begin = performance.now()
    await Promise.all(clients.splice(0).map(client => client.close()))
    return performance.now() - begin
  },
  cpu() {
    return spentSince({ user: 0, system: 0 })
  },
  async memory() {
    for (let i = 0; i < 3; i++) {
      globalThis.gc?.()
      await sleep(50)
    }
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  },
  longestTurn() {
    const longest = longestTurn
    clearInterval(watching)
    looked = process.cpuUsage()
    longestTurn = 0
    watching = setInterval(watchTurns, LOOK)
    return longest / 1_000
  },
  lost() {
    return lost
  },
}

/**
 * The time between two readings of the CPU, in ms. If several turns of the event loop end within this time, only their
 * sum is known.
 */
const LOOK = 10

function watchTurns(): void {
  longestTurn = Math.max(longestTurn, spentSince(looked))
  looked = process.cpuUsage()
}

function spentSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return user + system
}

async function answer<O extends Op>(order: Order<O>): Promise<Reply> {
  try {
    const answer = await done[order.op](order)
    return { answer: typeof answer === 'number' ? answer : undefined }
  } catch (error) {
    return { error: String(error) }
  }
}

process.on('message', async (order: Order) => {
  process.send!(await answer(order))
})
process.on('disconnect', () => process.exit())

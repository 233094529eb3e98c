/**
 * Four processes run the jobs of three tenants: at most eight jobs at a time, and at most three of one tenant. One tenant
 * has 1,000 jobs, and had asked for all of them before the others came with 20 jobs and with one.
 *
 * In a plain semaphore, the two small tenants wait until nearly all of the 1,000 jobs are done. With a group for each
 * tenant, the tenants take turns: the single job begins at once, and the 20 jobs after a few turns. The price is that the
 * large tenant has only three jobs at a time, also when the others are done, so all jobs together take longer.
 *
 *     npx tsx examples/job-platform.ts
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { LockClient } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379', ROLE, GROUPS = '' } = process.env
const PROCESSES = 4
const AT_A_TIME = 8
const OF_ONE_TENANT = 3
const JOB_MS = 5
const tenants = { large: 1_000, medium: 20, single: 1 }
type Tenant = keyof typeof tenants
const names = Object.keys(tenants) as Tenant[]

/** The key of the semaphore. */
const KEY = 'example:jobs'
/** The Redis keys: the tenants of all jobs in the order in which these began, and how many jobs run. */
const began = 'example:jobs:began'
const running = 'example:jobs:running'

const redis = new Redis(REDIS_URL)
redis.on('error', error => console.error(`Redis: ${error.message}`))

interface Result {
  readonly tenant: Tenant
  readonly waited: number
  /** How many jobs ran when this one had begun: of its tenant, and of all tenants. */
  readonly own: number
  readonly all: number
}

async function run(tenant: Tenant, waited: number): Promise<Result> {
  const [own, all] = await Promise.all([redis.hincrby(running, tenant, 1), redis.hincrby(running, 'all', 1)])
  await redis.rpush(began, tenant)
  await sleep(JOB_MS)
  await Promise.all([redis.hincrby(running, tenant, -1), redis.hincrby(running, 'all', -1)])
  return { tenant, waited, own, all }
}

/** Asks for its part of the jobs of each tenant that the platform names. Each of the four processes runs this function. */
async function worker(): Promise<void> {
  await using locks = new LockClient(redis)
  const jobs = locks.semaphore(KEY, AT_A_TIME)
  const mine = Number(ROLE)
  const results: Promise<Result>[] = []
  const ask = (tenant: Tenant) => {
    const options = GROUPS ? { group: tenant, groupLimit: OF_ONE_TENANT } : { fair: true }
    for (let i = mine; i < tenants[tenant]; i += PROCESSES) {
      results.push(jobs.using(options, lease => run(tenant, lease.waited)))
    }
  }
  const asked = new Promise<void>(resolve => {
    process.on('message', (tenant: Tenant) => {
      ask(tenant)
      if (tenant === names.at(-1)) resolve()
    })
  })
  process.send?.('ready')
  await asked
  process.send?.(await Promise.all(results))
  process.disconnect()
}

/** Lets four processes run all jobs. Returns what is to be said about it. */
async function platform(groups: boolean): Promise<string> {
  await redis.del(began, running)
  await using locks = new LockClient(redis)
  const jobs = locks.semaphore(KEY, AT_A_TIME)
  // No job begins before all have been asked for.
  const all = await jobs.lock({ permits: AT_A_TIME })
  const workers = Array.from({ length: PROCESSES }, (_, i) =>
    fork(fileURLToPath(import.meta.url), { env: { ...process.env, ROLE: String(i), GROUPS: groups ? 'yes' : '' } }),
  )
  await Promise.all(workers.map(heard))
  let asked = 0
  for (const tenant of names) {
    const answers = workers.map(child => child.send(tenant))
    if (answers.includes(false)) throw new Error('a process has ended')
    asked += tenants[tenant]
    while ((await jobs.inspect()).waiters.length < asked) await sleep(20)
  }
  const start = performance.now()
  const ends = Promise.all(workers.map(heard))
  await all.release()
  const results = (await ends).flat() as Result[]
  const took = performance.now() - start
  const most = (numbers: number[]) => Math.max(...numbers)
  const order = (await redis.lrange(began, 0, -1)) as Tenant[]
  const small = names.slice(1).map(name => {
    const waited = most(results.filter(({ tenant }) => tenant === name).map(result => result.waited))
    return `the last job of ${name} was number ${order.lastIndexOf(name) + 1}, after ${Math.round(waited)} ms`
  })
  return [
    `${groups ? 'groups' : 'plain'}: ${results.length} jobs in ${Math.round(took)} ms`,
    `at most ${most(results.map(result => result.all))} at a time, ${most(results.map(result => result.own))} of one tenant`,
    ...small,
  ].join('; ')
}

async function heard(child: ChildProcess): Promise<unknown> {
  const [message] = await Promise.race([once(child, 'message'), once(child, 'exit')])
  if (typeof message === 'number' || message === null) throw new Error('a process has failed')
  return message
}

try {
  if (ROLE === undefined) for (const groups of [true, false]) console.log(await platform(groups))
  else await worker()
} finally {
  redis.disconnect()
}

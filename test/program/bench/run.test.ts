import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startDelayProxy } from '../../../benchmarks/delay/proxy.ts'
import { sentBetween, watchCommands } from '../../../benchmarks/harness/census.ts'
import { Server } from '../../../benchmarks/harness/server.ts'
import { htmlReport } from '../../../benchmarks/report/html.ts'
import { goalsTable, tables } from '../../../benchmarks/report/table.ts'
import { batonFair, batonFairMutex, batonGroups, batonNoGroups } from '../../../benchmarks/rivals/baton.ts'
import { bottleneck } from '../../../benchmarks/rivals/bottleneck.ts'
import { bullmq } from '../../../benchmarks/rivals/bullmq.ts'
import { floorSet } from '../../../benchmarks/rivals/floors.ts'
import { run } from '../../../benchmarks/run.ts'
import { scenarios } from '../../../benchmarks/scenarios.ts'
import { freshKey, ownServer, plainRedis, redisUrl } from '../../kit/redis.ts'
import { absent, failing, hanging, noLock, stuck } from './rivals-for-tests.ts'

const scenario = {
  name: 'tiny',
  title: 'for this test',
  kind: 'loop',
  processes: 1,
  waiters: 2,
  keys: 1,
  hold: 1,
} as const
const plan = {
  scenarios: [scenario],
  rounds: 2,
  seconds: 0.3,
  rtt: 0,
  warmCores: false,
  limits: { warmUp: 50, open: 10_000, answer: 5_000, finish: 300 },
  further: fileURLToPath(new URL('./rivals-for-tests.ts', import.meta.url)),
}
const quietly = { announce() {}, look() {}, begin() {}, trial() {}, ended() {} }
const forever = new AbortController().signal

describe('a run', () => {
  test('interleaves the rivals; a hanging, failing or missing one is shown as such and stops nothing', async () => {
    const limits = { ...plan.limits, answer: 1_500 }
    const rivals = [batonFair, hanging, failing, stuck, noLock, absent, { ...absent, name: 'absent-too' }]
    const results = await run({ ...plan, rivals, rounds: 1, limits, url: redisUrl() }, quietly, forever)
    expect(results.trials.map(({ rival, outcome }) => `${rival} ${outcome}`)).toEqual([
      'baton-fair measured',
      'hanging failed',
      'failing failed',
      'stuck failed',
      'no-lock measured',
      'absent skipped',
      'absent-too skipped',
    ])
    const reasons = Object.fromEntries(results.trials.map(({ rival, reason }) => [rival, reason]))
    expect(reasons).toMatchObject({
      hanging: 'no call acquired the lock: 2 did not return, 0 rejected',
      failing: expect.stringMatching(
        /^no call acquired the lock: 0 did not return, \d+ rejected: Error: it does not work$/,
      ),
      stuck: expect.stringMatching(/^no answer to 'loop' within/),
      absent: 'not installed',
    })
    const figures = results.trials.map(trial => trial.figures)
    expect(figures[0]).toMatchObject({ overlaps: 0, unfinished: 0, errors: 0, starved: 0 })
    expect(figures[4]!.overlaps).toBeGreaterThan(0)
    expect(results.notes).toContainEqual('absent, absent-too are not measured: not installed')
    expect(results.notes).toContainEqual(expect.stringMatching(/^The run has only one round/))

    const text = tables(results)
    expect(text).toMatch(/^ *baton-fair /m)
    expect(text).toContain('stuck: failed: no answer')
    expect(text).toMatch(/no-lock .* overlaps/)
  })

  test('measures a burst, and a crash of waiters, and leaves nothing on a server that already existed', async () => {
    const { url } = await ownServer()
    const redis = plainRedis(url)
    await redis.set('somebody', 'else')
    const burst = { ...scenario, name: 'small-burst', kind: 'burst', processes: 2, waiters: 5 } as const
    const crash = { ...scenario, name: 'small-crash', kind: 'crash-waiters', processes: 2 } as const
    const results = await run(
      { ...plan, scenarios: [burst, crash], rivals: [batonFair], rounds: 1, url },
      quietly,
      forever,
    )
    const [first, second] = results.trials.map(trial => trial.figures)
    const faultless = { overlaps: 0, unfinished: 0, errors: 0, starved: 0 }
    expect(first).toMatchObject({ ...faultless, acquisitions: 10, drain: expect.any(Number) })
    expect(first!.inversions).toBeLessThan(0.5)
    expect(second).toMatchObject({ unfinished: 0, errors: 0 })
    expect(second!.nextGrant).toBeGreaterThan(0)
    expect(second!.ordinaryHandoff).toBeGreaterThan(0)
    expect(await redis.keys('*')).toEqual(['somebody'])
  })

  test('ends when it is interrupted; if nothing was measured, with the reason', async () => {
    const interruption = new AbortController()
    const listener = { ...quietly, trial: () => interruption.abort(new Error('enough')) }
    const running = run({ ...plan, rivals: [batonFair], url: redisUrl() }, listener, interruption.signal)
    await expect(running).rejects.toThrow('enough')
  })
})

test('a scenario is only for rivals with its kind of lock, and the results show which goals were reached', async () => {
  const one = scenarios.find(({ name }) => name === 'semaphore-one')!
  const few = { ...one, waiters: 2, hold: 1 }
  const rivals = [batonFair, batonFairMutex, floorSet]
  const { url } = await ownServer()
  const results = await run({ ...plan, scenarios: [few], rivals, rounds: 1, url }, quietly, forever)
  expect(results.trials.map(({ rival, outcome }) => `${rival} ${outcome}`)).toEqual([
    'baton-fair measured',
    'baton-fair-mutex measured',
  ])
  expect(results.rivals.map(({ name }) => name)).toEqual(['baton-fair', 'baton-fair-mutex'])
  for (const { figures } of results.trials) {
    expect(figures).toMatchObject({ overlaps: 0, unfinished: 0, errors: 0, starved: 0 })
    expect(figures.commands).toBeLessThan(2.5)
  }
  const [faults, , handoff] = results.goals!
  expect(faults).toMatchObject({ goal: '0', measured: '0', verdict: 'reached' })
  const [semaphore, mutex] = results.trials.map(({ figures }) => figures)
  const near = (['handoffP50', 'crossP50'] as const).every(one => semaphore![one]! / mutex![one]! <= 1.15)
  expect(handoff).toMatchObject({ goal: '≤ 1.15', verdict: near ? 'reached' : 'missed' })
  expect(goalsTable(results)).toMatch(/^The project’s goals for redis-baton\n.*(\n.*)* reached/m)
  expect(htmlReport(results)).toContain('<h2>Goals</h2>')
})

test('the jobs of tenants: which libraries keep the limit of a tenant, and which also that of all', async () => {
  const jobs = scenarios.find(({ name }) => name === 'groups-jobs')!
  const few = { ...jobs, processes: 2, waiters: 16, hold: 20, groups: [16, 8, 8], permits: 4, groupLimit: 3 }
  const rivals = [batonGroups, batonNoGroups, bullmq, bottleneck]
  const { url } = await ownServer()
  const results = await run({ ...plan, scenarios: [few], rivals, rounds: 1, url }, quietly, forever)
  const most: Record<string, readonly [all: number, ofOne: number]> = {
    'baton-groups': [4, 3],
    'baton-no-groups': [4, 4],
    bullmq: [9, 3],
    bottleneck: [4, 3],
  }
  expect(results.trials.map(({ rival }) => rival)).toEqual(Object.keys(most))
  for (const { rival, figures } of results.trials) {
    expect(figures, rival).toMatchObject({ acquisitions: 32, unfinished: 0, errors: 0 })
    const [all, ofOne] = most[rival]!
    expect(figures.mostAtOnce, rival).toBeLessThanOrEqual(all)
    expect(figures.mostOfGroup, rival).toBeLessThanOrEqual(ofOne)
  }
  expect(tables(results)).toMatch(/^ *baton-groups /m)
  expect(htmlReport(results)).toContain('3 groups')
})

test('commands are those that clients send, not those that scripts call', async () => {
  const { url } = await ownServer()
  const server = await Server.reach(url, true)
  onTestFinished(() => server.close())
  const redis = plainRedis(url)
  const script = "redis.call('SET', KEYS[1], 1) redis.call('INCR', KEYS[1]) return redis.call('GET', KEYS[1])"
  const send = async () => {
    await redis.eval(script, 1, 'key')
    await redis.pexpire('key', 10_000)
  }
  const sighting = await watchCommands(url)
  await send()
  await expect.poll(() => sighting.sent()).toBe(2)
  sighting.stop()
  const census = sighting.census()
  const entries = { eval: 1, set: 0, incr: 0, get: 0, pexpire: 1 }
  expect(Object.fromEntries(census)).toEqual(entries)

  const before = await server.snapshot()
  for (let i = 0; i < 10; i++) await send()
  await redis.strlen('key') // `census` has no STRLEN, so this call counts as sent by a client
  const sent = sentBetween(before, await server.snapshot(), census)
  expect(sent.commands).toBe(21)
  expect(sent.usec).toBeGreaterThan(0)
})

test('the proxy delays each way, in order, and passes on the end', async () => {
  const other = await ownServer()
  const proxy = await startDelayProxy([redisUrl(), other.url], 20)
  try {
    const redis = plainRedis(proxy.urls[0]!)
    await redis.ping()
    const begin = performance.now()
    await redis.ping()
    expect(performance.now() - begin).toBeGreaterThanOrEqual(19)
    const key = `${freshKey()}-${randomUUID()}`
    const appended = Array.from({ length: 50 }, (_, i) => redis.append(key, String(i % 10)))
    await Promise.all(appended)
    expect(await redis.getdel(key)).toBe('0123456789'.repeat(5))

    const [, second] = proxy.urls
    await plainRedis(second).set(key, 'of the second')
    expect(await plainRedis(other.url).get(key)).toBe('of the second')
    expect(await redis.get(key)).toBeNull()
  } finally {
    proxy.stop()
  }
})

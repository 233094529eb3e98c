import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startDelayProxy } from '../../../benchmarks/delay/proxy.ts'
import { sentBetween, watchCommands } from '../../../benchmarks/harness/census.ts'
import { Server } from '../../../benchmarks/harness/server.ts'
import { expected } from '../../../benchmarks/harness/trial.ts'
import { htmlReport } from '../../../benchmarks/report/html.ts'
import { goalsTable, tables } from '../../../benchmarks/report/table.ts'
import { batonFair, batonFairMutex } from '../../../benchmarks/rivals/baton.ts'
import { floorBlpop, floorBroadcast, floorSet } from '../../../benchmarks/rivals/floors.ts'
import { run } from '../../../benchmarks/run.ts'
import { scenarios } from '../../../benchmarks/scenarios.ts'
import { freshKey, ownServer, plainRedis, redisUrl } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'
import { absent, failing, hanging, leaving, noLock, stuck } from './rivals-for-tests.ts'

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
    const rivals = [batonFair, hanging, failing, stuck, noLock, absent]
    const results = await run({ ...plan, rivals, rounds: 1, limits, url: redisUrl() }, quietly, forever)
    expect(results.trials.map(({ rival, outcome }) => `${rival} ${outcome}`)).toEqual([
      'baton-fair measured',
      'hanging failed',
      'failing failed',
      'stuck failed',
      'no-lock measured',
      'absent skipped',
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
    expect(results.notes).toContainEqual('absent is not measured: not installed')
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

  test('does not retry a rival that failed or left calls, and expects to end sooner', async () => {
    const left: number[] = []
    const listener = {
      ...quietly,
      begin: (_rounds: number, all: number) => void left.push(all),
      ended: (_trial: unknown, rest: number) => void left.push(rest),
    }
    // A note says that a rival was left out of later rounds, but only if the rival's kind is `baton`. So this test gives
    // that kind to `leaving`.
    const rivals = [noLock, hanging, { ...leaving, kind: 'baton' } as const]
    const results = await run({ ...plan, rivals, rounds: 3, url: redisUrl() }, listener, forever)
    expect(results.trials.map(({ rival, round, outcome }) => `${rival} ${round} ${outcome}`)).toEqual([
      'no-lock 1 measured',
      'hanging 1 failed',
      'leaving 1 measured',
      'no-lock 2 measured',
      'hanging 2 skipped',
      'leaving 2 skipped',
      'no-lock 3 measured',
      'hanging 3 skipped',
      'leaving 3 skipped',
    ])
    const why = 'no call acquired the lock: 2 did not return, 0 rejected'
    const reasons = (name: string) => results.trials.filter(({ rival }) => rival === name).map(({ reason }) => reason)
    expect(reasons('hanging')).toEqual([why, `failed in round 1: ${why}`, `failed in round 1: ${why}`])
    const gone = 'left 1 call that did not return in round 1'
    expect(reasons('leaving')).toEqual([undefined, gone, gone])
    expect(results.notes).toContainEqual(`leaving was left out of later rounds of tiny: ${gone}`)
    expect(results.notes.join()).not.toContain('hanging was not')

    const one = expected(scenario, plan.seconds)
    expect(left.map(ms => Math.round(ms / one))).toEqual([9, 8, 5, 2, 1, 0])

    const text = tables(results)
    expect(text).toContain(`hanging: failed: ${why} (in round 1; the lock was left out of later rounds)`)
    expect(text).toMatch(/^ *leaving .*\n *1 of 3 rounds .* 1 unfinished/m)
    expect(text).toContain(`leaving: the lock was left out of later rounds: ${gone}`)
    expect(text).not.toContain('skipped')
  })

  test('ends when it is interrupted; if nothing was measured, with the reason', async () => {
    const interruption = new AbortController()
    const listener = { ...quietly, trial: () => interruption.abort(new Error('enough')) }
    const running = run({ ...plan, rivals: [batonFair], url: redisUrl() }, listener, interruption.signal)
    await expect(running).rejects.toThrow('enough')
  })

  test('has what was measured until it was interrupted', async () => {
    const interruption = new AbortController()
    const listener = {
      ...quietly,
      trial: (rival: string) => void (rival === 'floor-set' && interruption.abort('SIGINT')),
    }
    const rivals = [batonFair, failing, absent, floorSet]
    const elsewhere = { ...scenario, name: 'later', title: 'never begun' }
    const scenarios = [{ ...scenario, waiters: 1 }, elsewhere]
    const results = await run({ ...plan, scenarios, rivals, url: redisUrl() }, listener, interruption.signal)
    expect(results.trials.map(({ rival, outcome }) => `${rival} ${outcome}`)).toEqual([
      'baton-fair measured',
      'failing failed',
      'absent skipped',
    ])
    // Three rivals would have had twelve trials in two scenarios with two rounds each. One trial is cancelled, because
    // its rival has failed in the first round.
    expect(results.notes[0]).toBe('The run was interrupted by SIGINT after 2 of 11 measurements.')
    expect(tables(results)).toMatch(/baton-fair .*\n *1 of 2 rounds/)
    expect(tables(results)).toMatch(/never begun\n *No lock was measured\.$/)
  })

  test('leaves nothing of an interrupted trial on a server that already existed', async () => {
    const { url } = await ownServer()
    const redis = plainRedis(url)
    const interruption = new AbortController()
    const keys = async () => (await redis.keys('*bench-*')).length
    const inTheMiddle = async () => {
      await eventually(async () => (await keys()) > 0, 30_000)
      interruption.abort(new Error('enough'))
    }
    const listener = { ...quietly, trial: () => void inTheMiddle() }
    const running = run({ ...plan, rivals: [batonFair], seconds: 5, url }, listener, interruption.signal)
    await expect(running).rejects.toThrow('enough')
    expect(await keys()).toBe(0)
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

test('all readers run when the writer ends, by one message to each client', async () => {
  const some = { ...scenarios.find(({ name }) => name === 'read-write-admit-1000')!, waiters: 3 }
  const rivals = [batonFair, floorBroadcast]
  const { url } = await ownServer()
  const results = await run({ ...plan, scenarios: [some], rivals, rounds: 1, url }, quietly, forever)
  for (const { figures, rival } of results.trials) {
    // Six readers read eleven times each.
    expect(figures, rival).toMatchObject({ overlaps: 0, unfinished: 0, errors: 0, acquisitions: 66, messages: 2 })
    expect(figures.admission).toBeGreaterThan(0)
  }
  expect(results.trials[0]!.figures.commands).toBeLessThan(2.2)
})

test('permits held by others do not count as holders of the trial, and exist while it lasts', async () => {
  const used = { ...scenarios.find(({ name }) => name === 'semaphore-used-10')!, inUse: 3 }
  const redis = plainRedis(redisUrl())
  const seen: number[] = []
  const watch = async () => {
    for (const key of await redis.keys('*%semaphore/{bench-*}:d')) seen.push(await redis.zcard(key))
  }
  const looking = setInterval(() => void watch(), 50)
  onTestFinished(() => clearInterval(looking))
  const results = await run(
    { ...plan, scenarios: [used], rivals: [batonFair, floorBlpop], rounds: 1, url: redisUrl() },
    quietly,
    forever,
  )
  expect(Math.max(...seen)).toBeGreaterThanOrEqual(3)
  for (const { figures } of results.trials) {
    expect(figures).toMatchObject({ overlaps: 0, unfinished: 0, errors: 0 })
    expect(figures.cycleP50).toBeGreaterThan(0)
  }
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

import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { sentBetween, watchCommands } from '../../src/bench/census.ts'
import { startDelayProxy } from '../../src/bench/delay/proxy.ts'
import { tables } from '../../src/bench/report/table.ts'
import { batonFair } from '../../src/bench/rivals/baton.ts'
import { floorSet } from '../../src/bench/rivals/floors.ts'
import { run } from '../../src/bench/run.ts'
import { Server } from '../../src/bench/server.ts'
import { freshKey, ownServer, plainRedis, redisUrl } from '../support/redis.ts'
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
  seconds: 0.1,
  rtt: 0,
  warmCores: false,
  limits: { warmUp: 50, open: 10_000, answer: 5_000, finish: 300 },
  further: fileURLToPath(new URL('./rivals-for-tests.ts', import.meta.url)),
}
const slow = 60_000
const quietly = { announce() {}, look() {}, begin() {}, trial() {}, ended() {} }
const forever = new AbortController().signal

describe('a run', () => {
  test('interleaves the rivals; one that hangs, fails or is missing is shown as such and stops nothing', {
    timeout: slow,
  }, async () => {
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
      hanging: 'nothing was acquired: 2 calls did not return, 0 rejected',
      failing: expect.stringMatching(
        /^nothing was acquired: 0 calls did not return, \d+ rejected: Error: it does not work$/,
      ),
      stuck: expect.stringMatching(/^no answer to 'loop' within/),
      absent: 'not installed',
    })
    const figures = results.trials.map(trial => trial.figures)
    expect(figures[0]).toMatchObject({ overlaps: 0, unfinished: 0, errors: 0, starved: 0 })
    expect(figures[4]!.overlaps).toBeGreaterThan(0)
    expect(results.notes).toContainEqual('absent is not measured: not installed')
    expect(results.notes).toContainEqual(expect.stringMatching(/^Only one round/))

    const text = tables(results)
    expect(text).toMatch(/^ *baton-fair /m)
    expect(text).toContain('stuck: failed: no answer')
    expect(text).toMatch(/no-lock .* overlaps/)
  })

  test('leaves nothing on a server that was there before', { timeout: slow }, async () => {
    const { url } = await ownServer()
    const redis = plainRedis(url)
    await redis.set('somebody', 'else')
    const results = await run({ ...plan, rivals: [batonFair, floorSet], url }, quietly, forever)
    expect(results.trials.map(({ rival, round }) => `${rival} ${round}`)).toEqual([
      'baton-fair 1',
      'floor-set 1',
      'baton-fair 2',
      'floor-set 2',
    ])
    expect(await redis.keys('*')).toEqual(['somebody'])
  })

  test('measures a burst, and a crash of waiters', { timeout: slow }, async () => {
    const burst = { ...scenario, name: 'small-burst', kind: 'burst', processes: 2, waiters: 5 } as const
    const crash = { ...scenario, name: 'small-crash', kind: 'crash-waiters', processes: 2 } as const
    const scenarios = [burst, crash]
    const results = await run({ ...plan, scenarios, rivals: [batonFair], rounds: 1, url: redisUrl() }, quietly, forever)
    const [first, second] = results.trials.map(trial => trial.figures)
    const faultless = { overlaps: 0, unfinished: 0, errors: 0, starved: 0 }
    expect(first).toMatchObject({ ...faultless, acquisitions: 10, drain: expect.any(Number) })
    expect(first!.inversions).toBeLessThan(0.5)
    expect(second).toMatchObject({ unfinished: 0, errors: 0 })
    expect(second!.nextGrant).toBeGreaterThan(0)
    expect(second!.ordinaryHandoff).toBeGreaterThan(0)
  })

  test('ends when it is interrupted', { timeout: slow }, async () => {
    const interruption = new AbortController()
    const listener = { ...quietly, trial: () => interruption.abort(new Error('enough')) }
    const running = run({ ...plan, rivals: [batonFair], url: redisUrl() }, listener, interruption.signal)
    await expect(running).rejects.toThrow('enough')
  })
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
  await redis.strlen('key') // not in the census
  const sent = sentBetween(before, await server.snapshot(), census)
  expect(sent.commands).toBe(21)
  expect(sent.usec).toBeGreaterThan(0)
})

test('the proxy delays each way, in order, and passes on the end', async () => {
  const proxy = await startDelayProxy(redisUrl(), 20)
  try {
    const redis = plainRedis(proxy.url)
    await redis.ping()
    const begin = performance.now()
    await redis.ping()
    expect(performance.now() - begin).toBeGreaterThanOrEqual(19)
    const key = `${freshKey()}-${randomUUID()}`
    const appended = Array.from({ length: 50 }, (_, i) => redis.append(key, String(i % 10)))
    await Promise.all(appended)
    expect(await redis.getdel(key)).toBe('0123456789'.repeat(5))
  } finally {
    proxy.stop()
  }
})

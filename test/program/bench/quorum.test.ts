/** Tests trials on several servers: which servers take part, which of them are frozen, and what is counted. */
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Results, Rival, Scenario, Trial } from '../../../benchmarks/contract.ts'
import { Server, type Snapshot, together } from '../../../benchmarks/harness/server.ts'
import { unfit } from '../../../benchmarks/harness/trial.ts'
import { quorum } from '../../../benchmarks/report/goals.ts'
import { htmlReport } from '../../../benchmarks/report/html.ts'
import { tables } from '../../../benchmarks/report/table.ts'
import { attainments } from '../../../benchmarks/report/verdict.ts'
import { batonFairSingle } from '../../../benchmarks/rivals/baton.ts'
import { redlockQuorum10ms } from '../../../benchmarks/rivals/redlock-quorum.ts'
import { run } from '../../../benchmarks/run.ts'
import { type ScenarioName, scenarios } from '../../../benchmarks/scenarios.ts'
import { ownServer, plainRedis, redisUrl } from '../../kit/redis.ts'
import { sleep } from '../../kit/time.ts'
import { madeUpResults } from './fixtures/make-results.ts'
import { asking, choosy } from './rivals-for-tests.ts'

const slow = 90_000
const quietly = { announce() {}, look() {}, begin() {}, trial() {}, ended() {} }
const forever = new AbortController().signal

function known(name: ScenarioName): Scenario {
  return scenarios.find(scenario => scenario.name === name)!
}

function plan(scenario: Scenario, rivals: readonly Rival[]) {
  return {
    scenarios: [scenario],
    rivals,
    rounds: 1,
    seconds: 0.5,
    rtt: 0,
    warmCores: false,
    url: undefined,
    limits: { warmUp: 200, open: 20_000 },
    further: fileURLToPath(new URL('./rivals-for-tests.ts', import.meta.url)),
  }
}

describe('a run on several servers', () => {
  test('sends to all of them, and counts what all of them were sent', { timeout: slow }, async () => {
    const rivals = [batonFairSingle, redlockQuorum10ms]
    const results = await run(plan(known('quorum-uncontended-5'), rivals), quietly, forever)
    const faultless = { overlaps: 0, unfinished: 0, errors: 0, starved: 0 }
    for (const { figures, rival } of results.trials) expect(figures, rival).toMatchObject(faultless)
    const [single, ...others] = results.trials.map(({ figures }) => figures)
    expect(single!.commands).toBeCloseTo(2, 0)
    expect(single).not.toHaveProperty('attempts')
    for (const { commands, attempts, cycleP99, cycleP50 } of others) {
      expect(Math.abs(commands! - 10)).toBeLessThan(1)
      expect(attempts).toBeCloseTo(1)
      expect(cycleP99).toBeGreaterThanOrEqual(cycleP50!)
    }
    expect(tables(results)).toMatch(/second\n.*lock \+ release|lock \+ release.*second/)
    expect(htmlReport(results)).toContain('5 servers')
  })

  test('counts attempts while clients disagree, with a client for each waiter', { timeout: slow }, async () => {
    const split = { ...known('quorum-split-8'), hold: 1 }
    const { trials } = await run(plan(split, [redlockQuorum10ms]), quietly, forever)
    expect(trials[0]!.figures).toMatchObject({ overlaps: 0, unfinished: 0, errors: 0 })
    expect(trials[0]!.figures.attempts).toBeGreaterThan(1.2)
  })

  test('has one server frozen while it is measured, and all servers back for the next trial', {
    timeout: slow,
  }, async () => {
    const frozen = { ...known('quorum-frozen'), servers: 3 }
    const chosen = { ...plan(frozen, [asking, redlockQuorum10ms, asking]), seconds: 1 }
    const results = await run(chosen, quietly, forever)
    const [first, redlock, again] = results.trials.map(({ figures }) => figures)
    for (const figures of [first, again]) {
      // While the trial is measured, one server is frozen. Each acquisition waits 200 ms for the answer of that server,
      // in vain.
      expect(figures!.cycleP50).toBeGreaterThan(195_000)
      expect(figures!.secondRounds).toBeGreaterThan(0)
      expect(figures!.secondRounds).toBeLessThanOrEqual(1)
    }
    expect(redlock).toMatchObject({ overlaps: 0, unfinished: 0, errors: 0 })
    expect(redlock!.commands).toBeCloseTo(4, 0)
    expect(redlock!.cycleP50).toBeLessThan(100_000)
  })

  test('waits until a lock counts servers that were just started', { timeout: slow }, async () => {
    // The workers of `choosy` fail if a server reports that it has been up for less than 3 s. So the trial is measured
    // only if the benchmark waits long enough.
    const { trials, notes } = await run(plan(known('quorum-uncontended-3'), [choosy]), quietly, forever)
    expect(trials[0]!.outcome).toBe('measured')
    expect(notes.join()).not.toContain('failed in the short test before the first round')
  })

  test('is not made on a server that already existed', { timeout: slow }, async () => {
    const chosen = { ...plan(known('quorum-uncontended-3'), [redlockQuorum10ms]), url: redisUrl() }
    const { trials, notes } = await run(chosen, quietly, forever)
    expect(trials).toMatchObject([
      { outcome: 'skipped', reason: 'needs 3 servers, which the benchmark starts only without --url' },
    ])
    expect(notes.join()).not.toContain('failed in the short test before the first round')
  })
})

test('a frozen server answers nothing until it is thawed, and a remote one cannot be frozen', async () => {
  const { url, pid } = await ownServer()
  const server = await Server.reach(url, true, pid)
  onTestFinished(() => server.close())
  const redis = plainRedis(url)
  await redis.ping()
  server.freeze()
  onTestFinished(() => server.thaw())
  const answer = redis.ping()
  expect(await Promise.race([answer, sleep(300)])).toBeUndefined()
  server.thaw()
  expect(await answer).toBe('PONG')

  const elsewhere = await Server.reach(url, true)
  onTestFinished(() => elsewhere.close())
  const frozen = { ...known('quorum-frozen'), servers: 1 }
  expect(unfit(frozen, [server])).toBeUndefined()
  expect(unfit(frozen, [elsewhere])).toBe(
    'needs a server that can be frozen, but the servers are not processes of this machine',
  )
  expect(unfit({ ...frozen, frozen: 0 }, [elsewhere])).toBeUndefined()
})

test('several servers together have the sum of each', () => {
  const one: Snapshot = {
    at: 10,
    cpu: 1,
    bytes: 2,
    memory: 3,
    calls: new Map([['evalsha', 4]]),
    usec: new Map([['evalsha', 5]]),
  }
  const other = { ...one, at: 20, calls: new Map(Object.entries({ evalsha: 1, set: 7 })) }
  expect(together([one, other])).toEqual({
    at: 15,
    cpu: 2,
    bytes: 4,
    memory: 6,
    calls: new Map(Object.entries({ evalsha: 5, set: 7 })),
    usec: new Map([['evalsha', 10]]),
  })
})

describe('the goals of a quorum', () => {
  type Given = readonly [rival: string, scenario: ScenarioName, figures: Trial['figures']]
  const results = (given: readonly Given[], rtt = 0): Results => ({
    ...madeUpResults,
    machine: { ...madeUpResults.machine, rtt },
    options: { rounds: 1, seconds: 1 },
    scenarios: scenarios.filter(({ name }) => given.some(([, scenario]) => scenario === name)),
    trials: given.map(([rival, scenario, figures]) => ({ rival, scenario, round: 1, outcome: 'measured', figures })),
  })
  const verdicts = (run: Results) =>
    Object.fromEntries(attainments(run).map(({ what, measured, verdict }) => [what, `${measured} ${verdict}`]))
  const run = (fair: Trial['figures'], frozen: number) =>
    results([
      ['baton-fair-quorum', 'quorum-uncontended-5', { cycleP50: 130, cycleP99: 500 }],
      ['baton-fair-single', 'quorum-uncontended-5', { cycleP50: 100, cycleP99: 400 }],
      ['baton-fair-quorum', 'quorum-frozen', { cycleP99: frozen }],
      ['baton-fair-quorum', 'quorum-2x8-hold5', fair],
      ['baton-fair-single', 'quorum-2x8-hold5', { throughput: 200, waitMax: 100, starved: 0 }],
    ])

  test('are reached against one server, and against five that all answer', () => {
    expect(verdicts(run({ throughput: 170, waitMax: 150, starved: 0 }, 990))).toEqual({
      'overlaps, calls that never return, and errors: quorum': '0 reached',
      'uncontended lock + release p50, fair, 5 servers ÷ `baton-fair-single`': '1.30 reached',
      'starved waiters, fair, 2 × 8, hold 5 ms, 3 servers': '0 reached',
      'longest wait, fair, 2 × 8, hold 5 ms, 3 servers ÷ `baton-fair-single`': '1.50 reached',
      'throughput, fair, 2 × 8, hold 5 ms, 3 servers ÷ `baton-fair-single`': '0.85 reached',
      'uncontended lock + release p99, fair, 1 of 5 servers frozen ÷ none frozen': '1.98 reached',
    })
  })

  test('are missed separately', () => {
    const missed = verdicts(run({ throughput: 150, waitMax: 250, starved: 1, overlaps: 1 }, 1_100))
    expect(Object.values(missed)).toEqual([
      '1 missed',
      '1.30 reached',
      '1 missed',
      '2.50 missed',
      '0.75 missed',
      '2.20 missed',
    ])
  })

  test('are also reported for runs with a network of 1 ms', () => {
    const cycles: readonly Given[] = [
      ['baton-unfair-quorum', 'quorum-uncontended-3', { cycleP50: 140 }],
      ['baton-unfair-single', 'quorum-uncontended-3', { cycleP50: 100 }],
    ]
    const what = 'uncontended lock + release p50, unfair, 3 servers ÷ `baton-unfair-single`'
    expect(verdicts(results(cycles, 1))[what]).toBe('1.40 missed')
    expect(verdicts(results(cycles, 5))).toEqual({})
    expect(quorum.map(goal => goal.what)).toContain(what)
  })
})

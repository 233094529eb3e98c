/** Tests trials on several servers: which servers take part, which of them are frozen, and what is counted. */
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Rival, Scenario } from '../../../benchmarks/contract.ts'
import { Server } from '../../../benchmarks/harness/server.ts'
import { unfit } from '../../../benchmarks/harness/trial.ts'
import { redlockQuorum10ms } from '../../../benchmarks/rivals/redlock-quorum.ts'
import { run } from '../../../benchmarks/run.ts'
import { type ScenarioName, scenarios } from '../../../benchmarks/scenarios.ts'
import { ownServer, plainRedis } from '../../kit/redis.ts'
import { sleep } from '../../kit/time.ts'
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

/**
 * Tests scenarios in which each caller acquires and releases the lock in a loop: in which order the callers start, and
 * what is reported if half of them are fair and the others unfair.
 */
import { expect, test } from 'vitest'
import type { Rival, Scenario, Trial } from '../../../benchmarks/contract.ts'
import { skipped } from '../../../benchmarks/harness/trial.ts'
import { batonFair, batonMixed, batonUnfair } from '../../../benchmarks/rivals/baton.ts'
import { floorPublish } from '../../../benchmarks/rivals/floors.ts'
import { run } from '../../../benchmarks/run.ts'
import { scenarios } from '../../../benchmarks/scenarios.ts'
import { redisUrl } from '../../kit/redis.ts'

const slow = 60_000
const quietly = { announce() {}, look() {}, begin() {}, trial() {}, ended() {} }
const short = { rounds: 1, seconds: 0.5, rtt: 0, warmCores: false, limits: { warmUp: 100 } }

async function trialOf(rival: Rival, name: string): Promise<Trial> {
  const chosen: Scenario[] = scenarios.filter(scenario => scenario.name === name)
  const plan = { ...short, scenarios: chosen, rivals: [rival], url: redisUrl() }
  const { trials } = await run(plan, quietly, new AbortController().signal)
  return trials[0]!
}

test.each([batonFair, floorPublish])(
  'with a hold, most hand-offs of $name cross processes',
  {
    timeout: slow,
  },
  async rival => {
    const { figures } = await trialOf(rival, '2x8-hold5')
    expect(figures).toMatchObject({ overlaps: 0, starved: 0, unfinished: 0, errors: 0 })
    // At the start, the callers of the two processes queue alternately. So on an idle machine all hand-offs go to the
    // other process. If each process queued all its eight callers at once, the callers of one process would be next to
    // each other in the queue. Then only one hand-off in eight would go to the other process.
    expect(figures.crossShare).toBeGreaterThan(0.6)
  },
)

test('of a mixed crowd, the fair and the unfair half are reported, and neither starves', {
  timeout: slow,
}, async () => {
  const { figures } = await trialOf(batonMixed, 'mixed')
  expect(figures).toMatchObject({ overlaps: 0, starved: 0, unfinished: 0, errors: 0 })
  // While a fair caller is queued, an unfair caller does not get the lock. By default, the unfair caller may join the
  // queue after a second. So the longest wait of an unfair caller is about one second or more.
  expect(figures.waitMaxUnfair).toBeGreaterThanOrEqual(995)
  expect(figures.waitMaxFair).toBeGreaterThan(0)
  expect(figures.waitMax).toBe(Math.max(figures.waitMaxFair!, figures.waitMaxUnfair!))
})

test('a rival that cannot mix is left out, and a scenario for mixing has no other rivals', async () => {
  const reasons = ['mixed', '2x8-hold5'].map(name => {
    const scenario: Scenario = scenarios.find(each => each.name === name)!
    return [batonMixed, batonUnfair, floorPublish].map(rival => skipped(rival, scenario))
  })
  const oneKind = 'its callers of one key cannot be both fair and unfair'
  expect(reasons).toEqual([
    [undefined, oneKind, oneKind],
    ['it is only for scenarios with both fair and unfair callers', undefined, undefined],
  ])
})

/** What a closed loop makes of the crowd it starts: who asks when, and what is found of each half of a mixed one. */
import { expect, test } from 'vitest'
import type { Rival, Scenario, Trial } from '../../../benchmarks/contract.ts'
import { batonFair } from '../../../benchmarks/rivals/baton.ts'
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
    // All of them where nothing disturbs. In lumps, as when each process asks at once for all its waiters: one of eight.
    expect(figures.crossShare).toBeGreaterThan(0.6)
  },
)

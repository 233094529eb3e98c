/** A process fails inside its section: the lease keeps others out as long as it lasts, the fencing token after that. */
import { describe, expect, test } from 'vitest'
import { Crew } from '../kit/crew.ts'

const lease = 1_500
const others = { rounds: 20, callers: 2 } as const

describe.each(['always', 'never', 'alternately'] as const)('callers that are fair: %s', fair => {
  // Break: `- Math.min(ttl / 10, 2 + ttl / 1000)` to `+ 5_000` in src/clock.ts: it believes in a lease that is over.
  test('I1 I2 I3: a process killed inside keeps others out until its lease ends, and no longer', {
    timeout: 60_000,
  }, async () => {
    const crew = await Crew.hire({ rounds: 10, fair, lease, fate: 'SIGKILL' }, { ...others, fair }, { ...others, fair })
    const [victim, ...rest] = crew.workers
    victim!.go()
    await victim!.fated()
    crew.died(victim!)
    for (const worker of rest) worker.go()
    await Promise.all(rest.map(worker => worker.done()))
    expect(await crew.violations()).toEqual([])
    // Two sections of the dead were completed.
    expect(await crew.written()).toHaveLength(82)
  })

  // Break: `- Math.min(ttl / 10, 2 + ttl / 1000)` to `+ 5_000` in src/clock.ts: it believes in a lease that is over.
  test('I1 I2 I8: a process stopped inside for longer than its lease changes nothing when it goes on', {
    timeout: 60_000,
  }, async () => {
    const crew = await Crew.hire({ rounds: 10, fair, lease, fate: 'SIGSTOP' }, { ...others, fair }, { ...others, fair })
    const [sleeper, ...rest] = crew.workers
    sleeper!.go()
    await sleeper!.fated()
    for (const worker of rest) worker.go()
    await Promise.all(rest.map(worker => worker.done()))
    expect(await crew.written()).toHaveLength(82)

    sleeper!.child.signal('SIGCONT')
    expect(await sleeper!.done()).toMatchObject({ refused: true })
    expect(await crew.written()).toHaveLength(89)
    expect(await crew.violations()).toEqual([])
    expect((await crew.history()).filter(({ kind }) => kind === 'lost')).toHaveLength(1)
  })
})

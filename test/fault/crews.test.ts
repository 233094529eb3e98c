/**
 * Tests a process that fails inside its critical section. Until its lease ends, no other process gets the lock. After
 * that, the fencing token protects the data. This file tries each kind of lock, and each way to wait, once.
 * killed-processes.test.ts and paused.test.ts try all combinations.
 */
import { describe, expect, test } from 'vitest'
import { Crew } from '../kit/crew.ts'

const lease = 1_500
const others = { rounds: 20, callers: 2 } as const

describe.each([
  { kind: 'mutex', fair: 'alternately' },
  { kind: 'semaphore', fair: 'always' },
  { kind: 'readWrite', fair: 'never' },
] as const)('callers of a $kind that are fair: $fair', how => {
  // This test fails if `- Math.min(ttl / 10, 2 + ttl / 1000)` becomes `+ 5_000` in src/clock.ts: a holder relies on a
  // lease that has ended.
  test('I1 I2 I3: a process killed inside its critical section keeps others out until its lease ends, and no longer', {
    timeout: 60_000,
  }, async () => {
    const crew = await Crew.hire(
      { rounds: 10, ...how, lease, fate: 'SIGKILL' },
      { ...others, ...how },
      { ...others, ...how },
    )
    const [victim, ...rest] = crew.workers
    victim!.go()
    await victim!.fated()
    crew.died(victim!)
    for (const worker of rest) worker.go()
    await Promise.all(rest.map(worker => worker.done()))
    expect(await crew.violations()).toEqual([])
    // The other two workers have completed 80 sections. The killed worker had completed two.
    expect(await crew.written()).toHaveLength(82)
  })

  // This test fails if `- Math.min(ttl / 10, 2 + ttl / 1000)` becomes `+ 5_000` in src/clock.ts: a holder relies on a
  // lease that has ended.
  test('I1 I2 I8: a process stopped inside its critical section for longer than its lease changes nothing when it continues', {
    timeout: 60_000,
  }, async () => {
    const crew = await Crew.hire(
      { rounds: 10, ...how, lease, fate: 'SIGSTOP' },
      { ...others, ...how },
      { ...others, ...how },
    )
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

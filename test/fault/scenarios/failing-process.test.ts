/** A process that fails inside its section: the lease keeps others out as long as it lasts, the fencing token after that. */
import { describe, expect, test } from 'vitest'
import { Crew, reportOf } from '../../kit/processes/crew.ts'
import { leave } from '../../kit/processes/witness.ts'
import { client } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'

const lease = 1_500
const others = { rounds: 20, callers: 2 } as const

describe.each(['always', 'never', 'alternately'] as const)('callers that are fair: %s', fair => {
  test('a process killed inside keeps others out until its lease ends, and no longer', {
    timeout: 60_000,
  }, async () => {
    const crew = await Crew.assemble()
    const { file, key } = crew
    const [victim, ...rest] = await crew.hire(
      { rounds: 10, fair, file, lease, fate: 'SIGKILL' },
      { ...others, fair, file },
      { ...others, fair, file },
    )
    victim?.go()
    await victim?.fated()
    for (const worker of rest) worker.go()

    // Until here the file of the dead catches whoever enters too early; it has to be gone when they may enter.
    const watcher = client()
    await eventually(async () => ((await watcher.inspect(key)).ttl ?? 0) < lease / 3)
    leave(file)
    expect(await reportOf(rest)).toEqual({ sections: 80, overlaps: 0, refused: 0, lost: 0 })
    // Two sections of the dead were completed.
    expect(await crew.register.read()).toBe('82')
    await crew.expectIncreasingTokens()
  })

  test('a process stopped inside for longer than its lease changes nothing when it goes on', {
    timeout: 60_000,
  }, async () => {
    const crew = await Crew.assemble()
    const [sleeper, ...rest] = await crew.hire(
      { rounds: 10, fair, lease, fate: 'SIGSTOP' },
      { ...others, fair },
      { ...others, fair },
    )
    sleeper?.go()
    await sleeper?.fated()
    for (const worker of rest) worker.go()
    expect(await reportOf(rest)).toEqual({ sections: 80, overlaps: 0, refused: 0, lost: 0 })
    expect(await crew.register.read()).toBe('82')

    sleeper?.child.signal('SIGCONT')
    expect(await sleeper?.report()).toEqual({ sections: 10, overlaps: 0, refused: 1, lost: 1 })
    expect(await crew.register.read()).toBe('89')
    await crew.expectIncreasingTokens()
  })
})

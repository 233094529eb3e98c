/** examples/tick.ts on three machines whose clocks differ by 200 ms. */
import { expect, test } from 'vitest'
import { Scene } from './scene.ts'

const scene = new Scene()

test('each tick runs once, whichever machine is first', async () => {
  const machines = ['-200', '0', '200'].map(SKEW_MS => scene.start('tick.ts', { SKEW_MS, TICK_MS: '6000', TICKS: '4' }))
  expect(await Promise.all(machines.map(machine => machine.ended()))).toEqual([0, 0, 0])
  const ticks = (await scene.redis.lrange('example:ticks', 0, -1)).map(Number)
  // The machines may have been started in different ticks.
  const [first = 0] = ticks
  expect(ticks).toEqual(ticks.map((_, i) => first + i))
  expect(ticks.length).toBeGreaterThanOrEqual(4)
}, 90_000)

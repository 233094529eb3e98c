/** Measures the cost of idle waiters: commands, and memory of client and server. */
import { setTimeout as sleep } from 'node:timers/promises'
import { watchCommands } from '../harness/census.ts'
import { now } from '../harness/clock.ts'
import { withoutGaps } from '../harness/measures.ts'
import { enqueue } from './queue.ts'
import type { Findings, Stage } from './stage.ts'

/**
 * How long to wait before the memory is measured, in ms. In this time, the server frees the buffers that it used for
 * new connections and for the waiters' requests.
 */
const calm = 2_500
/** How long to wait for a request to arrive at the server, in ms. */
const settled = 300
/** The shortest time for which waiters are watched, in s. Some rivals send a command only every few seconds. */
const leastSeconds = 5

/**
 * Measures idle waiters. They cause little traffic, so MONITOR can count their commands exactly. The holder has its own
 * process, and the commands with which it renews its lease are not counted.
 */
export async function idle(stage: Stage): Promise<Findings> {
  const { scenario, server, limits, seconds, signal } = stage.terms
  const { waiters } = scenario
  const holder = await stage.hire(1, 0)
  await holder.ask({ op: 'hold' }, limits.answer)
  const others = await server.clients()
  const parked = await stage.hire(0, waiters)
  const sighting = await watchCommands(server.url, others)
  try {
    const pause = (ms: number) => sleep(ms, undefined, { signal })
    const memory = () => parked.ask({ op: 'memory' }, limits.answer)
    // Before the measurement, one caller waits and gets the lock, so that the one-time costs of compiling and
    // connecting are not counted.
    const first = parked.ask({ op: 'hold' }, limits.answer)
    first.catch(() => {}) // if the trial fails before `await first`, this rejection must not be unhandled
    await server.settle(settled, settled)
    await holder.ask({ op: 'drop' }, limits.answer)
    await first
    await parked.ask({ op: 'drop' }, limits.answer)
    await holder.ask({ op: 'hold' }, limits.answer)
    await pause(calm)

    const clientBefore = await memory()
    const serverBefore = await server.snapshot()
    await enqueue(stage, [parked], 0, 0)
    await pause(calm)
    const sentBefore = sighting.sent()
    const begin = now()
    await pause(Math.max(leastSeconds, seconds) * 1_000)
    const commandsPerSecond = (sighting.sent() - sentBefore) / ((now() - begin) / 1_000)

    const serverAfter = await server.snapshot()
    const clientAfter = await memory()
    return {
      figures: withoutGaps({
        commandsPerSecond,
        residentPerWaiter: (clientAfter.resident - clientBefore.resident) / waiters,
        heapPerWaiter: (clientAfter.heap - clientBefore.heap) / waiters,
        redisPerWaiter: (serverAfter.memory - serverBefore.memory) / waiters,
      }),
    }
  } finally {
    sighting.stop()
  }
}

/** What idle waiters cost: commands, and memory on both sides. */
import { setTimeout as sleep } from 'node:timers/promises'
import { watchCommands } from '../harness/census.ts'
import { now } from '../harness/clock.ts'
import { withoutGaps } from '../harness/measures.ts'
import { enqueue } from './queue.ts'
import type { Findings, Stage } from './stage.ts'

/** In ms: until the server has freed the buffers that connecting and asking needed. */
const calm = 2_500
/** In ms: time for a request to arrive. */
const settled = 300
/** Watched at least this long, so as not to miss commands that are sent every few seconds. */
const leastSeconds = 5

/**
 * There is so little traffic that MONITOR can watch it, which shows exactly what is sent. The holder is in a separate
 * process, and its renewals do not count.
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
    // One waiter waits and is served first, so that one-time costs of compiling and connecting are not counted per
    // waiter.
    const first = parked.ask({ op: 'hold' }, limits.answer)
    first.catch(() => {}) // a failure in between ends the trial, and with it this call
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

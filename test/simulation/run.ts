/**
 * Runs many histories in batches. An event of a history may settle promises. The code that waits for these promises
 * runs in the next turn of the real event loop, and has to run before the next event of the history. To save turns,
 * each history of a batch runs one event, and then one turn serves all of them. Histories share nothing, so a history
 * does not depend on the others in its batch.
 */
import type { SimulatedKind } from './plan.ts'
import { World } from './world.ts'

const BATCH = 32

export interface Result {
  readonly histories: number
  readonly events: number
  /** How many leases were handed off within a client. */
  readonly handedOn: number
  /**
   * For read-write locks: how often an owner re-entered, and how often a request was refused because its owner would
   * wait for itself.
   */
  readonly reentered: number
  readonly deadlocks: number
  readonly seconds: number
  /** The smallest seed that failed, with its failure. */
  readonly failed: { readonly seed: number; readonly failure: string } | undefined
}

/** Runs the histories of the seeds until all have run, `seconds` are over, or one has failed. */
export async function runAll(
  kind: SimulatedKind,
  seeds: Iterator<number>,
  seconds = Number.POSITIVE_INFINITY,
): Promise<Result> {
  const begun = performance.now()
  const passed = () => (performance.now() - begun) / 1000
  const sums = { histories: 0, events: 0, handedOn: 0, reentered: 0, deadlocks: 0 }
  let worlds: World[] = []
  let failed: Result['failed']
  await quietly(async () => {
    for (;;) {
      while (worlds.length < BATCH && !failed && passed() < seconds) {
        const { value, done } = seeds.next()
        if (done) break
        worlds.push(new World(value, kind))
      }
      if (worlds.length === 0) return
      const running = await turn(worlds)
      for (const world of worlds) {
        if (running.includes(world)) continue
        sums.histories += 1
        sums.events += world.timeline.count
        for (const what of ['handedOn', 'reentered', 'deadlocks'] as const) sums[what] += world.counts[what]
        if (world.failure !== undefined && (!failed || world.seed < failed.seed)) {
          failed = { seed: world.seed, failure: world.failure }
        }
      }
      worlds = running
    }
  })
  return { ...sums, seconds: passed(), failed }
}

/** Runs one history, and returns its trace. */
export async function traceOf(
  kind: SimulatedKind,
  seed: number,
): Promise<{ lines: readonly string[]; failure: string | undefined }> {
  const world = new World(seed, kind, true)
  await quietly(async () => {
    for (let worlds = [world]; worlds.length > 0; ) worlds = await turn(worlds)
  })
  return { lines: world.trace.lines, failure: world.failure }
}

/** Runs one event of each history, and everything that follows from it. Returns the histories that are not over. */
async function turn(worlds: readonly World[]): Promise<World[]> {
  const running = worlds.filter(world => {
    Math.random = world.jitter
    return world.step()
  })
  await new Promise(resolve => setImmediate(resolve))
  for (const world of running) world.look()
  return running
}

/**
 * Runs `run` without recording the stacks of errors, to save time. Then restores `Math.random`: the histories replace
 * it, so that redis-baton's own random choices follow from the seed.
 */
async function quietly(run: () => Promise<void>): Promise<void> {
  const { random } = Math
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    await run()
  } finally {
    Math.random = random
    Error.stackTraceLimit = stackTraceLimit
  }
}

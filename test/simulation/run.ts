/**
 * Runs histories, one after another. An event of a history may settle promises. The code that waits for these promises
 * runs in the next turn of the real event loop, and has to run before the next event of the history.
 */
import type { SimulatedKind } from './plan.ts'
import { World } from './world.ts'

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
  /** The seed that failed, with its failure. */
  readonly failed: { readonly seed: number; readonly failure: string } | undefined
}

/** Runs the histories of the seeds until all have run, `seconds` are over, or one has failed. */
export async function runAll(
  kind: SimulatedKind,
  seeds: Iterable<number>,
  seconds = Number.POSITIVE_INFINITY,
): Promise<Result> {
  const begun = performance.now()
  const passed = () => (performance.now() - begun) / 1000
  const sums = { histories: 0, events: 0, handedOn: 0, reentered: 0, deadlocks: 0 }
  for (const seed of seeds) {
    const world = new World(seed, kind)
    await run(world)
    sums.histories += 1
    sums.events += world.timeline.count
    for (const what of ['handedOn', 'reentered', 'deadlocks'] as const) sums[what] += world.counts[what]
    const { failure } = world
    if (failure !== undefined) return { ...sums, seconds: passed(), failed: { seed, failure } }
    if (passed() >= seconds) break
  }
  return { ...sums, seconds: passed(), failed: undefined }
}

/** Runs one history, and returns its trace. */
export async function traceOf(
  kind: SimulatedKind,
  seed: number,
): Promise<{ lines: readonly string[]; failure: string | undefined }> {
  const world = new World(seed, kind, true)
  await run(world)
  return { lines: world.trace.lines, failure: world.failure }
}

/**
 * Runs a history without recording the stacks of errors, to save time. Meanwhile the history replaces `Math.random`, so
 * that redis-baton's own random choices follow from the seed.
 */
async function run(world: World): Promise<void> {
  const { random } = Math
  const { stackTraceLimit } = Error
  Math.random = world.jitter
  Error.stackTraceLimit = 0
  try {
    while (world.step()) {
      await new Promise(resolve => setImmediate(resolve))
      world.look()
    }
  } finally {
    Math.random = random
    Error.stackTraceLimit = stackTraceLimit
  }
}

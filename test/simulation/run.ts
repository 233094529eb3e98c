/**
 * Runs many histories, a batch at a time. Between two events of a history its promises have to run; a turn of the real
 * event loop sees to that, whatever their number, and one turn serves an event of each history of the batch. They share
 * nothing, so what one does is the same in any company.
 */
import type { SimulatedKind } from './plan.ts'
import { World } from './world.ts'

const BATCH = 32

export interface Result {
  readonly histories: number
  readonly events: number
  /** Leases that had their lock from another one of their client. */
  readonly handedOn: number
  /** Of read-write locks: how often an owner that held entered again, and was told that it would wait for itself. */
  readonly reentered: number
  readonly deadlocks: number
  readonly seconds: number
  /** The first seed that failed, and how. */
  readonly failed: { readonly seed: number; readonly failure: string } | undefined
}

/** Runs the histories of the seeds until they end, `seconds` are over, or one fails. */
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
        sums.handedOn += world.handedOn
        sums.reentered += world.reentered
        sums.deadlocks += world.deadlocks
        if (world.failure !== undefined && (!failed || world.seed < failed.seed)) {
          failed = { seed: world.seed, failure: world.failure }
        }
      }
      worlds = running
    }
  })
  return { ...sums, seconds: passed(), failed }
}

/** The same history once more, with its trace. */
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

/** One event of each, and everything that follows from it. Returns those that go on. */
async function turn(worlds: readonly World[]): Promise<World[]> {
  const running = worlds.filter(world => {
    Math.random = world.jitter
    return world.step()
  })
  await new Promise(resolve => setImmediate(resolve))
  for (const world of running) world.look()
  return running
}

/** Every choice comes from the seed, also the library's own; and no time is spent on stacks of errors that are expected. */
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

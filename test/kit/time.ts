import { readFileSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'

export function sleep(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}

/** Says how many ms have passed. */
export type Stopwatch = () => number

/**
 * Starts a stopwatch. It leaves out the time for which this thread, or the child process `pid`, was ready to run but was
 * not given a processor, because that time measures the machine. Only Linux says how long it was.
 */
export function stopwatch(pid?: number): Stopwatch {
  const own = () => performance.now() - starved('thread-self') - (pid === undefined ? 0 : starved(`${pid}`))
  const begin = own()
  return () => own() - begin
}

function starved(process: string): number {
  try {
    return Number(readFileSync(`/proc/${process}/schedstat`, 'latin1').split(' ')[1]) / 1_000_000
  } catch {
    return 0
  }
}

/** Calls `tell` when the stopwatch shows `limit` ms. Returns a function that cancels this. */
export function whenOver(elapsed: Stopwatch, limit: number, tell: () => void): () => void {
  let timer: NodeJS.Timeout | undefined
  const look = () => {
    const left = limit - elapsed()
    if (left > 0) timer = setTimeout(look, left)
    else tell()
  }
  look()
  return () => clearTimeout(timer)
}

/**
 * Waits until `check` returns a truthy value; fails after `limit` ms of a stopwatch. Use this for events that happen soon,
 * but at a moment that cannot be foreseen. The default of `limit` leaves room for a busy machine, and is shorter than the
 * defaults of `outageTimeout` and `lease`.
 */
export async function eventually<T>(check: () => T | Promise<T>, limit = 10_000): Promise<T> {
  const elapsed = stopwatch()
  for (;;) {
    const value = await check()
    if (value) return value
    if (elapsed() > limit) throw new Error(`not true within ${limit} ms: ${check}`)
    await sleep(5)
  }
}

/** Resolves when `performance.now()` reaches this moment. The event loop may add a small delay. */
export async function at(moment: number): Promise<void> {
  await sleep(Math.max(0, moment - performance.now() - 3))
  while (performance.now() < moment) await turn()
}

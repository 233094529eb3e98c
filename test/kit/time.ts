import { setImmediate as turn } from 'node:timers/promises'

export function sleep(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}

/**
 * Waits until `check` returns a truthy value; fails after `limit` ms. Use this for events that happen soon, but at a
 * moment that cannot be foreseen. The default of `limit` leaves room for a busy machine, and is shorter than the
 * defaults of `outageTimeout` and `lease`.
 */
export async function eventually<T>(check: () => T | Promise<T>, limit = 10_000): Promise<T> {
  const end = performance.now() + limit
  for (;;) {
    const value = await check()
    if (value) return value
    if (performance.now() > end) throw new Error(`not true within ${limit} ms: ${check}`)
    await sleep(5)
  }
}

/** Resolves when `performance.now()` reaches this moment. The event loop may add a small delay. */
export async function at(moment: number): Promise<void> {
  await sleep(Math.max(0, moment - performance.now() - 3))
  while (performance.now() < moment) await turn()
}

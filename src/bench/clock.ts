import { setTimeout as sleep } from 'node:timers/promises'

/** `performance.now()` counts from the start of the process, but on the same clock and without allocating. */
const start = Number(process.hrtime.bigint()) / 1e6 - performance.now()

/** ms of the machine's monotonic clock: moments of several processes can be compared. */
export function now(): number {
  return start + performance.now()
}

/** Sleeps until that moment; not at all when it is past. Never wakes before it. */
export async function until(moment: number): Promise<void> {
  for (let left = moment - now(); left > 0; left = moment - now()) await sleep(left)
}

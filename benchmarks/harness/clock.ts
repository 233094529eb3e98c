import { setTimeout as sleep } from 'node:timers/promises'

/** `performance.now()` counts from the start of the process, but on the same clock and without allocating. */
const start = offset()

/** ms of the machine's monotonic clock: moments of several processes can be compared. */
export function now(): number {
  return start + performance.now()
}

/** Sleeps until that moment; not at all when it is past. Never wakes before it. */
export async function until(moment: number): Promise<void> {
  for (let left = moment - now(); left > 0; left = moment - now()) await sleep(left)
}

/**
 * What is between the two clocks. A process that loses its core between the two looks finds too little, and all its
 * moments would be early by that: enough to show overlaps where there are none. So the largest of many looks counts.
 */
function offset(): number {
  let most = Number.NEGATIVE_INFINITY
  for (let look = 0; look < 100; look++) {
    const machine = Number(process.hrtime.bigint()) / 1e6
    most = Math.max(most, machine - performance.now())
  }
  return most
}

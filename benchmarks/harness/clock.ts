import { setTimeout as sleep } from 'node:timers/promises'

/** `performance.now()` uses the same clock without allocating, but counts from the start of the process. */
const start = offset()

/** ms of the machine's monotonic clock. Moments of several processes can be compared. */
export function now(): number {
  return start + performance.now()
}

/** Sleeps until that moment, and returns at once if it is past. Never wakes early. */
export async function until(moment: number): Promise<void> {
  for (let left = moment - now(); left > 0; left = moment - now()) await sleep(left)
}

/**
 * The difference between the two clocks. A process that loses its core between the two readings gets too small a
 * difference. All its moments would then be too early, which could show overlaps where there are none. So the largest
 * of many differences counts.
 */
function offset(): number {
  let most = Number.NEGATIVE_INFINITY
  for (let look = 0; look < 100; look++) {
    const machine = Number(process.hrtime.bigint()) / 1e6
    most = Math.max(most, machine - performance.now())
  }
  return most
}

import { setTimeout as sleep } from 'node:timers/promises'

/**
 * What the machine's monotonic clock showed when `performance.now()` was 0. `now` adds `performance.now()` and does not
 * read the machine's clock again, because `performance.now()` allocates no memory.
 */
const start = offset()

/** Reads the machine's monotonic clock, in ms. Readings of different processes can be compared. */
export function now(): number {
  return start + performance.now()
}

/** Sleeps until `moment`, which is a reading of `now`. Never returns early. */
export async function until(moment: number): Promise<void> {
  for (let left = moment - now(); left > 0; left = moment - now()) await sleep(left)
}

/**
 * Returns the difference between the machine's clock and `performance.now()`. The machine's clock is read first. If the
 * process loses its core before it reads `performance.now()`, the difference is too small. All times of the process
 * would then be too early, and the benchmark could report overlaps that did not happen. So the largest of many
 * differences is used.
 */
function offset(): number {
  let most = Number.NEGATIVE_INFINITY
  for (let look = 0; look < 100; look++) {
    const machine = Number(process.hrtime.bigint()) / 1e6
    most = Math.max(most, machine - performance.now())
  }
  return most
}

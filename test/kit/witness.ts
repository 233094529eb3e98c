import { expect } from 'vitest'
import type { Lease } from '../../src/index.ts'
import { sleep } from './time.ts'

/** A room that the callers of one process enter and leave, each with its lease. It counts the callers inside. */
export class Room {
  inside = 0
  most = 0
  readonly tokens: number[] = []

  async visit(lease: Lease, ms = 2): Promise<void> {
    this.most = Math.max(this.most, ++this.inside)
    this.tokens.push(lease.fencingToken)
    await sleep(ms)
    this.inside -= 1
  }
}

export function expectIncreasing(numbers: readonly number[]): void {
  for (const [i, number] of numbers.entries()) {
    if (i > 0) expect(number).toBeGreaterThan(numbers[i - 1] as number)
  }
}

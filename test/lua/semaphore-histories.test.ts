/** Tests lua/permits/: after each of many random calls, the data of a semaphore in Redis is consistent. */
import { expect, test } from 'vitest'
import { Random } from '../kit/random.ts'
import { History, SEEDS, type Seen, sumOf } from './permits-history.ts'
import { type Asker, TestSemaphore } from './semaphore.ts'

const NUMBERS = [3, 4]

class SemaphoreHistory extends History {
  protected newcomer(call: Asker): Asker {
    const of = this.random.pick(NUMBERS)
    return { ...call, wants: `${this.random.int(1, of)}/${of}` }
  }

  protected check({ holders, queue: [head] }: Seen, told: string): void {
    const sum = sumOf(holders)
    expect(sum, `I1 ${told}`).toBeLessThanOrEqual(Math.max(...NUMBERS))
    const wanted = head && sum + head.claim.wants[0]
    if (head) expect(wanted, `I4 the head fits, and is not admitted: ${told}`).toBeGreaterThan(head.claim.wants[1])
    const tokens = new Set(holders.map(({ token }) => token))
    expect(tokens.size, `I2 ${told}`).toBe(holders.length)
  }
}

test.each(SEEDS)('seed %i', async seed => {
  await new SemaphoreHistory(await TestSemaphore.on(), new Random(seed)).run()
})

/**
 * A function of AWS Lambda, whose process is frozen between two calls. What to copy:
 * - The client is made outside of the handler, so that all calls of the process use its connections.
 * - A lock is held only inside the handler. `using` releases it before the handler returns.
 * - The lease is fixed, and no longer than the function may still run. So a function that is ended at its time limit
 *   blocks others no longer than that.
 * - The wait is limited, because waiting is paid for, and leaves time for the work.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { LockClient, LockTimeoutError } from 'redis-baton'

interface Context {
  getRemainingTimeInMillis(): number
}

const { REDIS_URL = 'redis://127.0.0.1:6379', PAYMENT_MS = '50' } = process.env
const locks = new LockClient(REDIS_URL)
locks.on('error', ({ error }) => console.error(error.message))

export async function handler({ order }: { order: string }, context: Context): Promise<{ statusCode: number }> {
  const left = context.getRemainingTimeInMillis()
  try {
    await locks.using(`example:order:${order}`, { lease: left, timeout: left / 2 }, lease =>
      sleep(Number(PAYMENT_MS), undefined, { signal: lease.signal }),
    )
    return { statusCode: 200 }
  } catch (error) {
    if (error instanceof LockTimeoutError) return { statusCode: 503 }
    throw error
  }
}

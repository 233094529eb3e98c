/** A server whose time of day the test sets. */
import { expect, onTestFinished } from 'vitest'
import { findServerSource } from '../../local-redis/index.ts'
import { bluntRedis, serverIn } from './redis.ts'
import { SteppedClock } from './stepped-clock.ts'
import { emptyFolder } from './temp.ts'

export async function steppedServer() {
  const dir = await emptyFolder()
  const clock = await SteppedClock.make(dir)
  onTestFinished(() => clock.close())
  // The first call of `findServerSource` in a process may run other programs. Make it here, so that the server is the
  // only program that starts with the stepped clock.
  await findServerSource()
  const server = await clock.under(() => serverIn(dir))
  const redis = bluntRedis(server.url)

  /** Sets the server's time of day to the true time plus `ms`, at once. */
  async function step(ms: number): Promise<void> {
    clock.set(ms)
    const [seconds] = await redis.time()
    expect(Math.abs(Number(seconds) * 1_000 - clock.now())).toBeLessThan(5_000)
  }
  await step(0)
  return { url: server.url, redis, step }
}

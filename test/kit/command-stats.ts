/** Which commands a server was sent, by its own count. */
import type { Redis } from 'ioredis'

/** What scripts and this test itself call, which no lock client sends. */
const notSent = /^(info|client.*|config.*|scan|hello|ping)$/

type Calls = Record<string, number>

/** Calls of each command since the server's start, or since `before`; those that were not called are left out. */
export async function calls(redis: Redis, before: Calls = {}): Promise<Calls> {
  const text = await redis.info('commandstats')
  const counted = [...text.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map(
    ([, name = '', count]) => [name, Number(count) - (before[name] ?? 0)] as const,
  )
  return Object.fromEntries(counted.filter(([name, count]) => count > 0 && !notSent.test(name)))
}

/** Of these calls, those of a script. */
export function scriptCalls({ evalsha = 0, eval: full = 0 }: Calls): number {
  return evalsha + full
}

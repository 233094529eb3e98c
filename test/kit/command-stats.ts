/** Reads from a server's statistics which commands it has received. */
import type { Redis } from 'ioredis'

/** Commands that are not counted. They open or inspect a connection or a server; no operation on a lock needs them. */
const notSent = /^(info|client.*|config.*|scan|hello|ping)$/

type Calls = Record<string, number>

/** Counts the calls of each command since the server's start, or since `before`. Leaves out commands without calls. */
export async function calls(redis: Redis, before: Calls = {}): Promise<Calls> {
  const text = await redis.info('commandstats')
  const counted = [...text.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map(
    ([, name = '', count]) => [name, Number(count) - (before[name] ?? 0)] as const,
  )
  return Object.fromEntries(counted.filter(([name, count]) => count > 0 && !notSent.test(name)))
}

/** Returns how many of these calls ran a script. */
export function scriptCalls({ evalsha = 0, eval: full = 0 }: Calls): number {
  return evalsha + full
}

import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { clientsOf, ownConnectionTo } from '../../src/redis/clients.ts'
import { redisUrl } from '../kit/redis.ts'

/** The ways in which a lock client makes a connection to a server. */
const made: Record<string, () => Redis> = {
  'from a URL': () => clientsOf(redisUrl()).make(1_000) as Redis,
  'from options': () => clientsOf({ port: Number(new URL(redisUrl()).port) }).make(1_000) as Redis,
  "from the caller's instance": () => clientsOf(callers()).make(1_000) as Redis,
  'to a node of a cluster': () => ownConnectionTo(callers()),
}

function callers(): Redis {
  return new Redis(redisUrl(), { lazyConnect: true })
}

// A socket may report two errors. For example, a server that requires client certificates may send a TLS alert, and
// then data that cannot be decrypted.
test.each(Object.entries(made))(
  'I6: a second error of a socket does not end the process, connection %s',
  async (_, make) => {
    const redis = make()
    onTestFinished(() => redis.disconnect())
    const errors: string[] = []
    redis.on('error', (error: Error) => errors.push(error.message))
    await redis.connect()
    for (const message of ['the first', 'the second']) redis.stream.emit('error', new Error(message))
    expect(errors).toEqual(['the first'])
  },
)

import dns from 'node:dns'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test, vi } from 'vitest'
import { LockConnectionError } from '../../src/index.ts'
import { clientsOf, ownConnectionTo } from '../../src/redis/clients.ts'
import { heard, rejection } from '../kit/outcomes.ts'
import { client, freshKey, redisUrl } from '../kit/redis.ts'

type Found = (error: null, addresses: readonly { address: string; family: number }[]) => void

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

test('I6: a connector that rejects with no Error does not end the process, and its reason is in the error', async () => {
  class Connector {
    connect = () => Promise.reject('no route')
    disconnect() {}
  }
  const locks = client({ outageTimeout: 500 }, { Connector } as never)
  expect((await rejection(locks.lock(freshKey()), LockConnectionError)).message).toMatch(/: no route$/)
})

test('a name with two addresses: the error has the reasons of both', async () => {
  const addresses = ['127.0.0.1', '127.0.0.2'].map(address => ({ address, family: 4 }))
  const lookup = vi
    .spyOn(dns, 'lookup')
    .mockImplementation(((_name: string, _options: unknown, done: Found) => done(null, addresses)) as never)
  onTestFinished(() => lookup.mockRestore())
  const locks = client({ outageTimeout: 500 }, 'redis://two.test:1')
  const down = heard(locks, 'disconnected')
  const error = await rejection(locks.lock(freshKey()), LockConnectionError)
  const reasons = 'connect ECONNREFUSED 127.0.0.1:1; connect ECONNREFUSED 127.0.0.2:1'
  expect(error.message).toMatch(new RegExp(`: ${reasons}$`))
  expect(`${down[0]?.error}`).toBe(`AggregateError: ${reasons}`)
})

/** Tests cluster nodes that accept connections but never answer. No script runs, so one kind is enough: a mutex. */
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { Cluster } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { LockConnectionError } from '../../../src/index.ts'
import { client, freshKey } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'

// This test fails if `setTimeout(() => probe.disconnect(), 500)` becomes `setTimeout(() => {}, 500)` in
// src/redis/clients.ts: the client's extra connections, which find out why no node answers, stay open for ever.
test('I6 I7: a call rejects in time, and after close no connection is left', async () => {
  const sockets = new Set<Socket>()
  let came = 0
  const server = createServer(socket => {
    came += 1
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.resume()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const cluster = new Cluster([{ host: '127.0.0.1', port }], { lazyConnect: true, slotsRefreshTimeout: 300 })
  const locks = client({ outageTimeout: 2_000 }, cluster)
  await expect(locks.lock(freshKey())).rejects.toThrow(LockConnectionError)
  expect(came).toBeGreaterThan(2)
  await locks.close()
  await eventually(() => sockets.size === 0, 5_000)
})

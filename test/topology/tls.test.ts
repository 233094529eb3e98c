/**
 * Tests clients that lack a certificate, or that do not use TLS. Their calls must reject, and the error must give the
 * reason. The contract tests over TLS cover everything else.
 */
import type { ConnectionOptions } from 'node:tls'
import { beforeAll, expect, test } from 'vitest'
import type { RunningServer } from '../../local-redis/index.ts'
import { LockConnectionError } from '../../src/index.ts'
import { rejection } from '../kit/outcomes.ts'
import { client, freshKey } from '../kit/redis.ts'
import { Authority } from '../kit/topologies/certificates.ts'
import { tls } from '../kit/topologies/tls.ts'

let port: number
/** The port of the same server without TLS. */
let plain: number
let given: ConnectionOptions

beforeAll(async () => {
  const servers = await tls.start()
  if (servers.client.kind !== 'server') throw new Error('TLS is among the options')
  port = servers.client.options.port as number
  plain = (servers.data[0] as RunningServer).port
  given = servers.client.options.tls as ConnectionOptions
  return servers.stop
})

/** Makes a call with these options of TLS, or without TLS, and returns the cause of its failure. */
async function cause(options?: ConnectionOptions, to = port): Promise<NodeJS.ErrnoException> {
  const server = { host: '127.0.0.1', port: to, ...(options && { tls: options }) }
  // A server without TLS may leave the handshake unanswered. The client gives it up after 1 s.
  const locks = client({ outageTimeout: 2_500 }, server)
  return (await rejection(locks.lock(freshKey()), LockConnectionError)).cause as NodeJS.ErrnoException
}

test('without the authority’s certificate a client trusts no server', async () => {
  const { ca, ...rest } = given
  expect((await cause(rest)).code).toMatch(/SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY_LEAF_SIGNATURE/)
})

test('with the certificate of another authority of the same name, a client trusts no server', async () => {
  const { cert } = new Authority('the private authority of the tests')
  expect((await cause({ ...given, ca: cert })).code).toMatch(/CERT_SIGNATURE_FAILURE|UNABLE_TO_VERIFY_LEAF_SIGNATURE/)
})

test('without its own certificate a client is rejected', async () => {
  const { ca } = given
  // The server sends the reason and closes the connection. The client may notice the end of the connection first.
  expect((await cause({ ca })).message).toMatch(/certificate required|ECONNRESET|EPIPE|closed/i)
})

// If only one side uses TLS, ioredis and Redis report little more than a closed connection.
test('if only one side uses TLS, the error asks about the port', async () => {
  expect((await cause()).message).toMatch(/this client does not use TLS; is this the server's TLS port\?/)
  expect((await cause(given, plain)).message).toMatch(/this client uses TLS; is this the server's TLS port\?/)
})

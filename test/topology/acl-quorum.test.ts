/** Tests the rights that the servers of a quorum require in addition to the rights for one server (docs/quorum.md). */
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ClientOptions, LockClient, LockConnectionError } from '../../src/index.ts'
import { mutex } from '../../src/kinds/mutex/mutex.ts'
import { promptly, rejection, within } from '../kit/outcomes.ts'
import { aclRule } from '../kit/rights.ts'
import { type QuorumServer, startQuorumServer } from '../kit/topologies/quorum-server.ts'

/** The quorum's servers. Each persists every write. */
let servers: QuorumServer[] = []
beforeAll(async () => {
  servers = await Promise.all(Array.from({ length: 3 }, () => startQuorumServer()))
})
afterAll(() => Promise.all(servers.map(server => server.stop())))

interface Scene extends AsyncDisposable {
  readonly locks: LockClient
  readonly warnings: Error[]
  /** The commands that the servers have refused to run for this user. */
  refused(): Promise<string[]>
}

/**
 * Creates a user on each server, and a client that logs in as this user. The user has the rights for one server and the
 * rights in `besides`.
 */
async function scene(name: string, besides: readonly string[], options: ClientOptions = {}): Promise<Scene> {
  const admins = servers.map(({ url }) => new Redis(url))
  for (const admin of admins) await admin.acl('SETUSER', name, 'on', '>pw', ...aclRule([mutex]), ...besides)
  const ways = servers.map(({ port }) => ({ host: '127.0.0.1', port, username: name, password: 'pw' }))
  const locks = new LockClient(ways, options)
  const warnings: Error[] = []
  locks.on('error', ({ error }) => warnings.push(error as Error))
  return {
    locks,
    warnings,
    async refused() {
      const logs = await Promise.all(admins.map(admin => admin.acl('LOG')))
      return logs.flat().flatMap(entry => {
        const fields = (entry as unknown[]).map(String)
        return fields.includes(name) ? [fields[fields.indexOf('object') + 1]!] : []
      })
    },
    async [Symbol.asyncDispose]() {
      await locks.close()
      for (const admin of admins) admin.disconnect()
    },
  }
}

/** Returns, for each server, why the server did not vote. */
const reasonsOf = ({ cause }: LockConnectionError) =>
  (cause as AggregateError).errors.map((error: Error) => (error.cause as Error).message)

// This test fails if the word 'always' or the word 'appendfsync' is changed in src/compose/quorum/eligibility.ts.
test('with +info and +config|get votes count at once: no other right is needed, no error is reported', async () => {
  await using at = await scene('whole', ['+info', '+config|get'], { lease: 600_000 })
  const lease = await promptly(at.locks.lock('whole', { fair: true }))
  expect(await promptly(lease.release())).toBe(true)
  expect(await promptly(at.locks.isLocked('whole'))).toBe(false)
  expect([at.warnings, await at.refused()]).toEqual([[], []])
})

// This test fails if `.catch(() => [])` is removed in src/compose/quorum/eligibility.ts.
test('without +config|get votes count once servers have been up longer than the longest lease', async () => {
  await using long = await scene('young', ['+info'], { lease: 600_000, outageTimeout: 1_500 })
  const error = await promptly(rejection(long.locks.lock('young'), LockConnectionError))
  expect(reasonsOf(error)).toEqual(Array(3).fill(expect.stringMatching(/its votes count only after another \d+ ms/)))
  expect(new Set(await long.refused())).toEqual(new Set(['config|get']))

  await using short = await scene('old', ['+info'], { lease: 1_000 })
  expect((await within(8_000, short.locks.lock('old'))).held).toBe(true)
})

// This test fails if `if (this.useless) return false` is removed in src/compose/quorum/eligibility.ts.
test('without +info votes never count, and the error says why', async () => {
  await using at = await scene('unknown', ['+config|get'], { lease: 100, outageTimeout: 2_000 })
  const error = await promptly(rejection(at.locks.lock('unknown'), LockConnectionError))
  expect(reasonsOf(error)).toEqual(
    Array(3).fill(expect.stringMatching(/whether the server was restarted.*votes do not count.*NOPERM.*info/i)),
  )
})

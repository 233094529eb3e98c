/**
 * Tests that large requests are split into several script calls, because each call blocks the server while it runs
 * (I9).
 */
import { expect, test } from 'vitest'
import type { Claim, Runner } from '../../src/kind.ts'
import { mutex } from '../../src/kinds/mutex/mutex.ts'
import type { MutexScripts } from '../../src/kinds/scripts.ts'
import { Keys, Namespace } from '../../src/redis/keys.ts'

type Call = readonly [name: string, args: readonly unknown[]]

/** Makes a mutex whose scripts return the replies of `reply`. Also returns a list of its script calls. */
function scripted(reply: (args: Call[1]) => { status: string; values: unknown[] }) {
  const calls: Call[] = []
  const runner = {
    async run(name: string, _keys: unknown, args: Call[1], read?: (reply: object) => unknown) {
      calls.push([name, args])
      const answer = { ...reply(args), sent: 0, repeated: false }
      return read ? read(answer) : answer
    },
  } as Runner<MutexScripts>
  const kind = mutex.make({
    names: new Keys(new Namespace('lock:', false), mutex),
    scripts: runner,
    replicated: undefined,
    waiterTtl: 10_000,
    newId: () => 'n'.repeat(28),
    warn() {},
  })
  return { kind, calls }
}

function claim(i: number): Claim {
  const id = `client------${String(i).padStart(16, '0')}`
  return { key: 'key', id, owner: id, label: 'label', lease: 30_000, headStart: 0 }
}

/** `before`: how many arguments stand before the list. */
function lengths(calls: readonly Call[], before: number, each: number): number[] {
  return calls.map(([, args]) => (args.length - before) / each)
}

test('a heartbeat of 1,001 waiters is three calls, of at most 500 each', async () => {
  const { kind, calls } = scripted(([, ...waiters]) => {
    const places = waiters.flatMap((_, i) => (i % 2 === 0 ? [1] : []))
    return { status: 'tended', values: [1_000, 0, '1', 0, 'label', ...places] }
  })
  const waiters = Array.from({ length: 1_001 }, (_, i) => ({ claim: claim(i), ticket: String(i) }))

  expect((await kind.tend('key', waiters)).waiters).toHaveLength(1_001)
  expect(lengths(calls, 1, 2)).toEqual([500, 500, 1])
})

test('a renewal of 401 holds is three calls, of at most 200 each', async () => {
  const { kind, calls } = scripted(asked => ({
    status: 'renewed',
    values: asked.flatMap((_, i) => (i % 3 === 0 ? [30_000] : [])),
  }))
  const holds = Array.from({ length: 401 }, (_, i) => ({ hold: { key: `key ${i}`, id: claim(i).id }, token: i, ms: 1 }))

  expect(await kind.renew(holds)).toHaveLength(401)
  expect(lengths(calls, 0, 3)).toEqual([200, 200, 1])
})

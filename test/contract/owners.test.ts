/** Tests named owners, which may hold and wait in several calls, clients and processes at the same time. */
import { describe, expect } from 'vitest'
import { type Lease, type LockClient, LockTimeoutError } from '../../src/index.ts'
import { kindsHere } from '../kit/kinds.ts'
import { heard, promptly, rejection } from '../kit/outcomes.ts'
import { park, queueOf } from '../kit/parking.ts'
import { clients, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'
import { takeAndVanish } from './leases.ts'

describe('an owner with several waiting calls (I4)', () => {
  const ways = {
    'in the queue': { fair: true },
    'in the line': { fairAfter: 600_000 },
    'in the line, then in the queue': { fairAfter: 50 },
  }

  describe.each(Object.entries(ways))('%s', (_, options) => {
    test.for([
      { where: 'one client', of: 1 },
      { where: 'two clients', of: 2 },
    ])('enters with all waiting calls when one is granted, from $where', async ({ of }, { key }) => {
      const [other, ...own] = clients(1 + of) as [LockClient, ...LockClient[]]
      const holder = await other.lock(key)
      const waits = own.map(locks => heard(locks, 'waiting'))
      const calls = [0, 1, 2].map(i => own[i % of]!.lock(key, { owner: 'me', ...options }))
      await eventually(() => waits.flat().length >= 3)
      if ('fairAfter' in options && options.fairAfter < 1_000) await queueOf(other, key, 3)
      await holder.release()

      const leases = (await promptly(Promise.all(calls))) as Lease[]
      expect(new Set(leases.map(lease => lease.fencingToken)).size).toBe(1)
      expect(leases.map(lease => lease.held)).toEqual([true, true, true])
      const [first, ...others] = leases as [Lease, ...Lease[]]
      await first.release()
      expect(await other.tryLock(key, { timeout: 0 })).toBeNull()
      for (const lease of others) await lease.release()
      expect(await other.inspect(key)).toMatchObject({ locked: false, waiters: [] })
    })
  })

  test('keeps other owners out until all its calls have ended, and then lets them in', async ({ key }) => {
    const [other, own] = clients(2) as [LockClient, LockClient]
    const holder = await other.lock(key)
    const first = await park(own, key, { fair: true, owner: 'me' })
    const next = await park(other, key, { fair: true })
    const second = await park(own, key, { fair: true, owner: 'me' })
    await holder.release()
    const [a, b] = await promptly(Promise.all([first.lease, second.lease]))
    expect(await queueOf(other, key, 1)).toMatchObject({ owner: 'me', holds: 2 })
    await a.release()
    await b.release()
    expect((await promptly(next.lease)).via).toBe('handoff')
  })
})

describe('a hold of an owner whose process has died (I4, I7)', () => {
  test('ends with its own lease, however often the owner returns elsewhere', async ({ key }) => {
    const [own, other] = clients(2) as [LockClient, LockClient]
    await takeAndVanish(key, { owner: 'me', lease: 1_000 })
    const next = await park(other, key, { fair: true })
    let granted: Lease | undefined
    next.lease.then(lease => {
      granted = lease
    })
    const begun = performance.now()
    while (!granted && performance.now() - begun < 10_000) {
      const lease = await own.tryLock(key, { owner: 'me', lease: 1_000 })
      await sleep(100)
      await lease?.release()
    }
    expect(granted?.held).toBe(true)
  })
})

describe('a lock whose first hold has ended, while its owner still holds it', () => {
  const ways = ['is released', 'lapses'] as const

  test.for(kindsHere.filter(({ kind }) => kind !== 'semaphore').flatMap(each => ways.map(end => ({ ...each, end }))))(
    'is shown, and taken away, under a hold that lives: one that $end ($kind)',
    async ({ client, end }, { key }) => {
      const [one, two, three, other] = ['one', 'two', 'three', 'other'].map(label => client({ label })) as LockClient[]
      const waiting = heard(other!, 'waiting')
      const lapses = end === 'lapses' && { lease: 800 }
      const leases = [
        await one!.lock(key, { owner: 'job', ...lapses }),
        await two!.lock(key, { owner: 'job', ...lapses }),
        await three!.lock(key, { owner: 'job', label: 'the last of three' }),
      ]
      expect((await other!.inspect(key)).holds).toBe(3)
      for (const lease of leases.slice(0, 2)) {
        if (lapses) await eventually(() => !lease.held)
        else await lease.release()
      }
      await eventually(async () => (await other!.inspect(key)).holds === 1)
      const { holders, owner, label } = await other!.inspect(key)
      const last = { id: leases[2]!.id, owner: 'job', label: 'the last of three' }
      expect(holders).toMatchObject([last])
      expect({ owner, label }).toEqual({ owner: 'job', label: last.label })
      const late = await rejection(other!.lock(key, { fair: true, timeout: 50 }), LockTimeoutError)
      expect([late.holder?.label, waiting[0]?.holder?.label]).toEqual([last.label, last.label])
      const lock = other!.constructor.name === 'LockClient' ? key : other!.readWrite(key).write
      for (const { id } of leases.slice(0, 2)) expect(await other!.forceRelease(lock, id)).toBe(false)
      expect(leases[2]!.held).toBe(true)
      expect(await other!.forceRelease(lock, last.id)).toBe(true)
      await eventually(() => !leases[2]!.held)
    },
  )
})

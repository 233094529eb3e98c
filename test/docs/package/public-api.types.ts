/**
 * What a user's compiler must accept, infer and refuse. The compiler checks this file, and it is never run. If a line
 * below `@ts-expect-error` is correct, the compiler reports an error.
 */
import type { Cluster, Redis, RedisOptions } from 'ioredis'
import type { Cluster as Cluster5, Redis as Redis5 } from 'ioredis-5'
import type * as nodeRedis from 'redis'
import type * as nodeRedis5 from 'redis-5'
import {
  type ClientStats,
  type Lease,
  LockClient,
  type LockClosedError,
  LockError,
  type LockLostError,
  type LockState,
  type LockTimeoutError,
  type Via,
} from 'redis-baton'
import { instrument } from 'redis-baton/opentelemetry'
import { expectTypeOf } from 'vitest'

declare const locks: LockClient
declare const account: Account
declare const timeoutError: LockTimeoutError

interface Account {
  balance: number
}

// A client can be made from a URL, from a connection, or from options for a connection.
expectTypeOf(LockClient).toBeConstructibleWith('redis://127.0.0.1:6379', { prefix: 'app', fair: true })
expectTypeOf<string | Redis | Cluster | RedisOptions>().toExtend<ConstructorParameters<typeof LockClient>[0]>()
expectTypeOf<Redis5 | Cluster5>().toExtend<ConstructorParameters<typeof LockClient>[0]>()
declare const ofNodeRedis:
  | ReturnType<typeof nodeRedis.createClient | typeof nodeRedis.createCluster | typeof nodeRedis.createSentinel>
  | ReturnType<typeof nodeRedis5.createClient | typeof nodeRedis5.createCluster>
new LockClient(ofNodeRedis)
declare const hidden: ReturnType<typeof nodeRedis5.createSentinel>
// @ts-expect-error the options of this client cannot be read
new LockClient(hidden)
// @ts-expect-error a number names no Redis
new LockClient(6379)
// @ts-expect-error a promise of a client is not a client
new LockClient(Promise.resolve(ofNodeRedis))
declare const ofIoredis: Redis | Cluster | Redis5 | Cluster5
instrument(locks, { links: { redis: ofIoredis } })
// @ts-expect-error there is no such option
new LockClient('redis://127.0.0.1:6379', { timout: 5 })

// `lock` resolves to a lease; `tryLock` may resolve to null; both are disposable.
expectTypeOf(
  locks.lock('key', { fair: true, timeout: 5, signal: AbortSignal.timeout(5) }),
).resolves.toEqualTypeOf<Lease>()
expectTypeOf(locks.tryLock('key')).resolves.toEqualTypeOf<Lease | null>()
expectTypeOf<Lease | LockClient>().toExtend<AsyncDisposable>()
// An option whose value is undefined counts as absent. So a caller can pass on an option that may be undefined.
locks.lock('key', { timeout: undefined, signal: undefined, owner: undefined })
// @ts-expect-error times are numbers
locks.lock('key', { timeout: '5s' })

// `using` passes the lease to its function, and returns what the function returns. The options may be left out.
expectTypeOf(locks.using('key', () => 1)).toEqualTypeOf<Promise<number>>()
expectTypeOf(locks.using('key', async lease => lease.fencingToken)).toEqualTypeOf<Promise<number>>()
expectTypeOf(locks.using('key', { fair: true }, async () => 'done')).toEqualTypeOf<Promise<string>>()
locks.using('key', { lease: 5_000 }, lease => expectTypeOf(lease).toEqualTypeOf<Lease>())
// @ts-expect-error the function is missing
locks.using('key', { fair: true })
// @ts-expect-error the function comes last
locks.using('key', () => 1, { fair: true })

// `wrap` keeps the signature: arguments, result (as a promise) and `this`.
const ship = locks.wrap('shipping', async (order: number, express?: boolean) => ({ order, express }))
expectTypeOf(ship).parameters.toEqualTypeOf<[order: number, express?: boolean | undefined]>()
expectTypeOf(ship).returns.resolves.toEqualTypeOf<{ order: number; express: boolean | undefined }>()
ship(7)
// @ts-expect-error an order is a number
ship('7')

const bill = locks.wrap(
  (order, customer) => {
    expectTypeOf(order).toEqualTypeOf<number>()
    return `bill:${customer}`
  },
  (order: number, customer: string) => `${order} for ${customer}`,
  { fairAfter: Number.POSITIVE_INFINITY, label: 'billing' },
)
expectTypeOf(bill).toBeCallableWith(7, 'Ada')
expectTypeOf(bill).returns.toEqualTypeOf<Promise<string>>()

const deposit = locks.wrap('account', function (this: Account, amount: number) {
  return this.balance + amount
})
expectTypeOf(deposit).thisParameter.toEqualTypeOf<Account>()
expectTypeOf(deposit.call(account, 5)).toEqualTypeOf<Promise<number>>()
// @ts-expect-error the function needs an account as `this`
deposit(5)

const report = locks.wrap(locks.semaphore('reports', 5), (name: string) => name.length, { permits: 2 })
expectTypeOf(report).toEqualTypeOf<(this: unknown, name: string) => Promise<number>>()
locks.wrap(
  (from: string, to: string) => locks.all([from, to]),
  (_from: string, _to: string) => {},
  { timeout: 5_000 },
)
// @ts-expect-error a mutex has no permits
locks.wrap('key', () => {}, { permits: 2 })

// The other methods of the client.
expectTypeOf(locks.runAs('owner', () => 'sync')).toEqualTypeOf<string>()
expectTypeOf(locks.runAs('owner', async () => 1)).toEqualTypeOf<Promise<number>>()
expectTypeOf(locks.inspect('key')).resolves.toEqualTypeOf<LockState>()
expectTypeOf(locks.list()).toExtend<AsyncIterable<LockState>>()
expectTypeOf(locks.forceRelease('key')).resolves.toEqualTypeOf<boolean>()
expectTypeOf(locks.forceRelease(locks.semaphore('key', 5), 'id')).resolves.toEqualTypeOf<boolean>()
// @ts-expect-error a missing id must not release all holders
locks.forceRelease('key', undefined)
expectTypeOf(locks.stats()).toEqualTypeOf<ClientStats>()
expectTypeOf(locks.close()).toEqualTypeOf<Promise<void>>()
expectTypeOf(locks.close).toBeCallableWith({ drain: 5_000 })
// @ts-expect-error `drain` is a number of ms
locks.close({ drain: '5s' })

// Users cannot set the fields of a lease.
expectTypeOf<Lease['fencingToken']>().toEqualTypeOf<number>()
expectTypeOf<Lease['signal']>().toEqualTypeOf<AbortSignal>()
expectTypeOf<Lease['renew']>().toBeCallableWith(5_000)
expectTypeOf<Lease['release']>().returns.resolves.toEqualTypeOf<boolean>()
declare const lease: Lease
// @ts-expect-error only Redis issues tokens
lease.fencingToken = 5

// The name of an event determines the type of its fields.
locks.on('acquired', e => {
  expectTypeOf(e.fencingToken).toEqualTypeOf<number>()
  expectTypeOf(e.via).toEqualTypeOf<Via>()
})
locks.once('waiting', e => expectTypeOf(e.position).toEqualTypeOf<number | undefined>())
locks.on('lost', e => expectTypeOf(e.error).toEqualTypeOf<LockLostError | LockClosedError>())
// @ts-expect-error there is no such event
locks.on('aquired', () => {})
// @ts-expect-error this event has no owner
locks.on('released', e => e.owner)

// Errors have a common base, a code, and fields that explain them.
expectTypeOf<LockTimeoutError | LockLostError>().toExtend<LockError>()
expectTypeOf(LockError).instance.toHaveProperty('code').toEqualTypeOf<string>()
expectTypeOf(timeoutError.holder?.label).toEqualTypeOf<string | undefined>()

/** Tests that @locked runs a method under a lock, as `wrap` runs a function, with every source of client and key. */
import { beforeAll, describe, expect } from 'vitest'
import { LockArgumentError, LockLostError, LockTimeoutError, locked } from '../../src/index.ts'
import { heard, promptly, rejection } from '../kit/outcomes.ts'
import { client, clients, freshKey, test } from '../kit/redis.ts'
import { sleep } from '../kit/time.ts'
import type { Decorated } from './decorated.fixture.ts'
import { decorated } from './decorated.ts'

let classes: Decorated
beforeAll(async () => {
  classes = await decorated()
})

describe('a call of a method that is @locked', () => {
  test('keeps its `this`, its arguments and its result, whether public, private or static', async () => {
    const { Kinds } = classes.kinds({ locked, locks: client(), key: freshKey() })
    const object = new Kinds('Ada')
    expect(await object.open('hello')).toBe('hello Ada')
    expect(await object.open('hello', true)).toBe('hello Ada twice')
    expect(await object.hidden()).toBe('hidden Ada')
    expect(await Kinds.whole()).toBe('whole of all')
    expect(await object['computed name']()).toBe('computed')
  })

  test('I1: excludes all other calls of the key: of this object, of another, of another class, of another client', async () => {
    const [one, two] = clients(2)
    const key = freshKey()
    const first = classes.kinds({ locked, locks: one!, key })
    const [a, b] = [new first.Kinds('a'), new first.Kinds('b')]
    const { turnstile } = first
    const others = Array.from({ length: 3 }, () => two!.using(key, () => turnstile.pass('other')))
    await Promise.all([a.open('x'), b.open('x'), a.hidden(), b.hidden(), first.Kinds.whole(), ...others])
    expect(turnstile.most).toBe(1)
    expect(await one!.isLocked(key)).toBe(false)
  })

  test('re-enters from another method of the same key, also from one that overrides it', async () => {
    const { Base, Derived } = classes.nested({ locked, locks: client(), key: freshKey() })
    expect(await promptly(new Base().outer(3))).toBe(12)
    expect(await promptly(new Derived().outer(3))).toBe(14)
  })

  test('rejects with what the method rejects with, and releases', async ({ locks, key }) => {
    const failing = classes.obedient({ locked, locks, key }).obey(async () => {
      throw new Error('mine')
    })
    await expect(failing).rejects.toThrow('mine')
    expect(await locks.isLocked(key)).toBe(false)
  })

  test('I8: rejects with LockLostError if the lock was lost while the method ran', async ({ key }) => {
    const object = classes.obedient({ locked, locks: client(), key, options: { lease: 200 } })
    const error = await rejection(
      object.obey(() => sleep(400)),
      LockLostError,
    )
    expect(error).toMatchObject({ code: 'ERR_LOCK_LOST', key })
  })

  test('takes the options of lock', async ({ one, two, key }) => {
    await one.lock(key)
    const object = classes.obedient({ locked, locks: two, key, options: { timeout: 50 } })
    await rejection(
      object.obey(async () => {}),
      LockTimeoutError,
    )
  })

  test('can get its lease by a re-entry, with the lock’s token', async ({ locks, key }) => {
    const grants = heard(locks, 'acquired')
    const token = await classes.obedient({ locked, locks, key }).obey(() => locks.using(key, l => l.fencingToken))
    expect(grants.map(({ via }) => via)).toEqual(['immediate', 'reentry'])
    expect(token).toBe(grants[0]!.fencingToken)
  })
})

describe('the client and the key', () => {
  test('come from the object and the arguments of the call, or from the class', async ({ locks, key }) => {
    const Account = classes.accounts({ locked, key })
    Account.locks = locks
    const grants = heard(locks, 'acquired')
    expect(await new Account(locks, 7).deposit('EUR', 5)).toBe('5 EUR into 7')
    expect(await new Account(locks, 8).deposit('SEK', 6)).toBe('6 SEK into 8')
    expect(await Account.audit('books')).toBe('books')
    expect(grants.map(grant => grant.key)).toEqual([`${key}:7:EUR`, `${key}:8:SEK`, `${key}:books`])
  })

  test('a key function that throws rejects the call', async () => {
    const Account = classes.accounts({ locked, key: freshKey() })
    await expect(new Account(client(), 7).keyless()).rejects.toThrow('no key')
  })

  test('a call without a client is rejected with the reason', async () => {
    const Account = classes.accounts({ locked, key: freshKey() })
    const error = await rejection(new Account(undefined, 7).deposit('EUR', 5), LockArgumentError)
    expect(error.message).toBe('locks is undefined; expected a LockClient')
  })

  test('the key function of `wrap` receives the `this` of the call, too', async ({ locks }) => {
    const grants = heard(locks, 'acquired')
    const account = {
      id: freshKey(),
      name: locks.wrap(
        function (this: { id: string }) {
          return this.id
        },
        async function () {
          return this.id
        },
      ),
    }
    expect(await account.name()).toBe(account.id)
    expect(grants.map(({ key }) => key)).toEqual([account.id])
  })
})

describe('the class', () => {
  test('shows the methods as they were written: their names and numbers of parameters', () => {
    const { Kinds } = classes.kinds({ locked, locks: client(), key: freshKey() })
    expect([Kinds.prototype.open.name, Kinds.prototype.open.length]).toEqual(['open', 1])
    expect(Kinds.prototype['computed name'].name).toBe('computed name')
    expect(Kinds.whole.name).toBe('whole')
    const Account = classes.accounts({ locked, key: freshKey() })
    expect([Account.prototype.deposit.name, Account.prototype.deposit.length]).toEqual(['deposit', 2])
  })

  test.each(['getter', 'setter', 'field', 'accessor', 'class'])('is refused if a %s is @locked', kind => {
    const define = () => classes.misplaced[kind]!({ locked, locks: client(), key: freshKey() })
    expect(define).toThrow(LockArgumentError)
    expect(define).toThrow(`the kind of wrong is "${kind}"; expected "method", because only methods can be @locked`)
  })

  test.each([
    [{ key: '' }, 'key is ""'],
    [{ options: { timeout: -1 } }, 'timeout is -1'],
    [{ locks: {} as never }, 'locks is an object; expected a LockClient'],
  ])('is refused if a method is @locked by %j', (wrong, message) => {
    const define = () => classes.obedient({ locked, locks: client(), key: freshKey(), ...wrong })
    expect(define).toThrow(LockArgumentError)
    expect(define).toThrow(message)
  })

  test('is refused if its compiler knows only the older decorators', () => {
    const older = locked(client(), freshKey()) as unknown as (prototype: object, name: string) => unknown
    expect(() => older({}, 'method')).toThrow(
      'the context of @locked is "method"; expected the context object of a standard decorator; compile without experimentalDecorators',
    )
  })
})

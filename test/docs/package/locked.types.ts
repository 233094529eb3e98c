/**
 * What a user's compiler must accept, infer and refuse for `@locked`. Like `public-api.types.ts`, the file is checked
 * by the compiler and never run.
 */
import { type LockClient, locked } from 'redis-baton'
import { expectTypeOf } from 'vitest'

declare const locks: LockClient

class Account {
  readonly id: number = 7
  readonly #locks: LockClient = locks
  static readonly locks: LockClient = locks

  // The key is a string, or a function makes it from the method's arguments and `this`. In that function, the arguments
  // and `this` have the same types as in the method.
  @locked(locks, 'account')
  async deposit(amount: number, note?: string): Promise<{ amount: number; note: string | undefined }> {
    return { amount, note }
  }

  @locked(locks, function (from, amount) {
    expectTypeOf(this).toEqualTypeOf<Account>()
    expectTypeOf(from).toEqualTypeOf<string>()
    expectTypeOf(amount).toEqualTypeOf<number>()
    return `account:${this.id}:${from}`
  })
  async withdraw(_from: string, _amount: number): Promise<void> {}

  // The client may also be returned by a function. This function receives the object that has the method or, for a
  // static method, the class.
  @locked(
    self => {
      expectTypeOf(self).toEqualTypeOf<Account>()
      return self.#locks
    },
    'account',
    { fair: true, timeout: 5_000 },
  )
  async #audit(): Promise<number> {
    return this.id
  }

  audit(): Promise<number> {
    return this.#audit()
  }

  @locked(
    self => self.locks,
    name => `account:${name}`,
  )
  static async find(_name: string): Promise<Account> {
    return new Account()
  }

  // The decorator accepts a lock of any kind, or several locks at once. The lock decides which options the decorator
  // accepts.
  @locked(locks, locks.semaphore('account', 5), { permits: 2 })
  async limited(): Promise<void> {}

  @locked(
    self => self.#locks,
    function (permits) {
      expectTypeOf(permits).toEqualTypeOf<number>()
      return this.#locks.semaphore('account', permits)
    },
    { permits: 2, fair: true },
  )
  async limitedTo(_permits: number): Promise<void> {}

  @locked(locks, (from, to) => locks.all([from, to]), { timeout: 5_000 })
  async transfer(_from: string, _to: string): Promise<void> {}

  // @ts-expect-error a mutex has no permits
  @locked(locks, 'account', { permits: 2 })
  async wrongPermits(): Promise<void> {}

  // A generic method stays generic.
  @locked(locks, 'account')
  async echo<T>(value: T): Promise<T> {
    return value
  }

  // @ts-expect-error the method does not return a promise
  @locked(locks, 'account')
  balance(): number {
    return 0
  }

  // @ts-expect-error a getter is not called
  @locked(locks, 'account')
  get total(): Promise<number> {
    return Promise.resolve(0)
  }

  // @ts-expect-error a field is not a method
  @locked(locks, 'account')
  later = async () => {}

  // @ts-expect-error there is no such field
  @locked(self => self.lucks, 'account')
  async typo(): Promise<void> {}

  // @ts-expect-error the id is not a client
  @locked(self => self.id, 'account')
  async wrongClient(): Promise<void> {}

  // @ts-expect-error a key is a string
  @locked(locks, function () {
    return this.id
  })
  async wrongKey(): Promise<void> {}

  // @ts-expect-error the method has no such argument
  @locked(locks, (_id: number, name: string) => name)
  async wrongArguments(_id: number): Promise<void> {}

  // @ts-expect-error there is no such option
  @locked(locks, 'account', { timout: 5 })
  async wrongOption(): Promise<void> {}
}

// The decorated method keeps its signature.
const account = new Account()
expectTypeOf(account.deposit).parameters.toEqualTypeOf<[amount: number, note?: string | undefined]>()
expectTypeOf(account.deposit(5)).resolves.toEqualTypeOf<{ amount: number; note: string | undefined }>()
expectTypeOf(account.echo('x')).toEqualTypeOf<Promise<string>>()
expectTypeOf(Account.find).toBeCallableWith('Ada')
// @ts-expect-error an amount is a number
account.deposit('5')

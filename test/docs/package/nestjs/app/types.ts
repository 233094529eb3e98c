/** What a user's compiler must accept and refuse for `@Locked`. The file is compiled and never run. */
import type { LockClient } from 'redis-baton'
import { Locked } from 'redis-baton/nestjs'

export class Accounts {
  readonly tenant = 'acme'

  constructor(readonly locks: LockClient) {}

  @Locked('accounts')
  async all(_limit: number): Promise<string[]> {
    return []
  }

  // The function that makes the key may use all arguments, only the first one, or none, and it may use `this`.
  @Locked((from: string, amount: number) => `${from}:${amount}`)
  async withdraw(_from: string, _amount: number, _note?: string): Promise<void> {}

  @Locked((from: string) => from, { fair: true, client: 'reports' })
  async deposit(_from: string, _amount: number): Promise<number> {
    return 0
  }

  @Locked(() => 'accounts')
  async audit(_from: string): Promise<void> {}

  @Locked(function (this: Accounts) {
    return this.tenant
  })
  async close(): Promise<void> {}

  @Locked((from?: string) => from ?? 'all')
  async optional(_from?: string): Promise<void> {}

  // The function in `@Locked` may also return a lock of any kind, or several locks, instead of a key. What it returns
  // determines which options the decorator accepts.
  @Locked(
    function (this: Accounts, limit: number) {
      return this.locks.semaphore('accounts', limit)
    },
    { permits: 2, client: 'reports' },
  )
  async limited(_limit: number): Promise<void> {}

  @Locked(function (this: Accounts, from: string, to: string) {
    return this.locks.all([from, to])
  })
  async transfer(_from: string, _to: string): Promise<void> {}

  // @ts-expect-error a mutex has no permits
  @Locked('accounts', { permits: 2 })
  async wrongPermits(): Promise<void> {}

  @Locked('accounts')
  async echo<T>(value: T): Promise<T> {
    return value
  }

  // @ts-expect-error the method does not return a promise
  @Locked('accounts')
  balance(): number {
    return 0
  }

  // @ts-expect-error the method's first argument is not a number
  @Locked((id: number) => `${id}`)
  async wrongArgument(_id: string): Promise<void> {}

  // @ts-expect-error the method has no second argument
  @Locked((_id: string, name: string) => name)
  async wrongArguments(_id: string): Promise<void> {}

  // @ts-expect-error the argument may be missing
  @Locked((id: string) => id)
  async wrongOptional(_id?: string): Promise<void> {}

  // @ts-expect-error `this` belongs to another class
  @Locked(function (this: Map<string, number>) {
    return `${this.size}`
  })
  async wrongThis(): Promise<void> {}

  // @ts-expect-error a field is not a method
  @Locked('accounts')
  later = async () => {}

  // @ts-expect-error a key is a string
  @Locked(() => 7)
  async wrongKey(): Promise<void> {}

  // @ts-expect-error there is no such option
  @Locked('accounts', { timout: 5 })
  async wrongOption(): Promise<void> {}
}

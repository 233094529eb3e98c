/** The decorator `@locked`: the declaration of a method says that the method runs under a lock, and names the lock. */
import { setTimeout as work } from 'node:timers/promises'
import { type Lease, LockClient, LockTimeoutError, locked } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379' } = process.env

/** In this example a Map takes the place of a database table that several servers share. */
const rows = new Map([['A-1', { balance: 100, fencingToken: 0 }]])

/** Makes the lock's key from the object and the arguments of a call. Here each account has one lock. */
function keyOf(this: Account): string {
  return `example:account:${this.number}`
}

class Account {
  readonly number: string
  readonly #locks: LockClient

  constructor(number: string, locks: LockClient) {
    this.number = number
    this.#locks = locks
  }

  get #row() {
    return rows.get(this.number)!
  }

  // The first argument is a function that gets the object (here, the account) and returns its client. If the client is
  // a constant, pass the client itself.
  @locked(self => self.#locks, keyOf, { fair: true, timeout: 10_000 })
  async withdraw(amount: number): Promise<number> {
    const { balance } = this.#row
    await work(20)
    return this.#store(balance - amount)
  }

  /**
   * Holds the lock and calls `withdraw`, which takes the same lock. The inner call re-enters instead of waiting for
   * itself.
   */
  @locked(self => self.#locks, keyOf, { fair: true, timeout: 10_000 })
  async payOut(): Promise<number> {
    const { balance } = this.#row
    await this.withdraw(balance)
    return balance
  }

  @locked(self => self.#locks, keyOf, { timeout: 200 })
  async close(): Promise<void> {
    rows.delete(this.number)
  }

  /**
   * A decorated method does not receive the lease. To get the fencing token, take the lock again: a re-entry has the
   * same token.
   */
  #store(balance: number): Promise<number> {
    return this.#locks.using(keyOf.call(this), ({ via, fencingToken }: Lease) => {
      if (fencingToken < this.#row.fencingToken) throw new Error('a later holder has already written')
      rows.set(this.number, { balance, fencingToken })
      console.log(`stored ${balance} (${via})`)
      return balance
    })
  }
}

await using locks = new LockClient(REDIS_URL, { label: 'the bank' })
const account = new Account('A-1', locks)
const again = new Account('A-1', locks) // another object for the same account

// Each call reads the balance, subtracts 30 and stores the result. Without the lock, all three would store 70.
const left = await Promise.all([account.withdraw(30), again.withdraw(30), account.withdraw(30)])
console.log(`left after each: ${left.join(', ')}`)
console.log(`paid out: ${await account.payOut()}`)

// If a call of a decorated method does not get the lock in time, the call rejects with LockTimeoutError, just like
// `locks.lock`.
const audit = await locks.lock(keyOf.call(account))
try {
  await account.close()
} catch (error) {
  if (!(error instanceof LockTimeoutError)) throw error
  console.log(`not closed: the account is held by ${error.holder?.label}`)
}
await audit.release()

import type { locked as decorator, LockClient, LockOptions } from '../../src/index.ts'

export type Decorated = typeof import('./decorated.fixture.ts')

export interface Parts {
  readonly locked: typeof decorator
  readonly locks: LockClient
  readonly key: string
  readonly options?: LockOptions
}

/** Counts how many callers run a method at the same time. */
export class Turnstile {
  #inside = 0
  most = 0

  async pass<T>(result: T): Promise<T> {
    this.most = Math.max(this.most, ++this.#inside)
    await new Promise(resolve => setTimeout(resolve, 5))
    this.#inside -= 1
    return result
  }
}

/** Makes a class with public, private and static methods, all under one lock. */
export function kinds({ locked, locks, key, options }: Parts) {
  const turnstile = new Turnstile()

  class Kinds {
    static readonly of = 'all'
    readonly name: string

    constructor(name: string) {
      this.name = name
    }

    @locked(locks, key, options)
    async open(greeting: string, twice = false): Promise<string> {
      return turnstile.pass(`${greeting} ${this.name}${twice ? ' twice' : ''}`)
    }

    @locked(locks, key, options)
    async #hidden(): Promise<string> {
      return turnstile.pass(`hidden ${this.name}`)
    }

    hidden(): Promise<string> {
      return this.#hidden()
    }

    @locked(locks, key, options)
    static async whole(this: { readonly of: string }): Promise<string> {
      // biome-ignore lint/complexity/noThisInStatic: the test checks that `this` is the class.
      return turnstile.pass(`whole of ${this.of}`)
    }

    @locked(locks, key, options)
    async ['computed name'](): Promise<string> {
      return turnstile.pass('computed')
    }
  }
  return { Kinds, turnstile }
}

/** Makes a class whose methods take the client and the key from the object or from the arguments. */
export function accounts({ locked, key }: Pick<Parts, 'locked' | 'key'>) {
  class Account {
    static locks: LockClient | undefined
    readonly #locks: LockClient | undefined
    readonly id: number

    constructor(locks: LockClient | undefined, id: number) {
      this.#locks = locks
      this.id = id
    }

    @locked(
      self => self.#locks as LockClient,
      function (currency: string) {
        return `${key}:${this.id}:${currency}`
      },
    )
    async deposit(currency: string, amount: number): Promise<string> {
      return `${amount} ${currency} into ${this.id}`
    }

    @locked(
      self => self.locks as LockClient,
      (what: string) => `${key}:${what}`,
    )
    static async audit(what: string): Promise<string> {
      return what
    }

    @locked(
      self => self.#locks as LockClient,
      () => {
        throw new Error('no key')
      },
    )
    async keyless(): Promise<void> {}
  }
  return Account
}

/**
 * Makes a class whose methods run under a semaphore or under several locks. Some decorators get a lock object, and
 * others a function that returns one during the call.
 */
export function otherKinds({ locked, locks, key }: Parts) {
  class Exports {
    readonly key = key

    @locked(locks, locks.semaphore(key, 3), { permits: 2 })
    async large(fn: () => Promise<unknown>): Promise<unknown> {
      return fn()
    }

    @locked(
      () => locks,
      function (_fn, permits: number) {
        return locks.semaphore(this.key, permits)
      },
      { timeout: 0 },
    )
    async limited(fn: () => Promise<unknown>, _permits: number): Promise<unknown> {
      return fn()
    }

    @locked(locks, function () {
      return locks.all([`${this.key}:a`, locks.semaphore(`${this.key}:b`, 1)])
    })
    async both(fn: () => Promise<unknown>): Promise<unknown> {
      return fn()
    }

    @locked(locks, () => 7 as never)
    async none(): Promise<void> {}
  }
  return new Exports()
}

/** Makes classes with methods that call each other, and a method that overrides another. */
export function nested({ locked, locks, key }: Parts) {
  class Base {
    @locked(locks, key, { timeout: 2_000 })
    async inner(n: number): Promise<number> {
      return n * 2
    }

    @locked(locks, key)
    async outer(n: number): Promise<number> {
      const [a, b] = await Promise.all([this.inner(n), this.inner(n)])
      return a + b
    }
  }

  class Derived extends Base {
    @locked(locks, key)
    override async inner(n: number): Promise<number> {
      return (await super.inner(n)) + 1
    }
  }
  return { Base, Derived }
}

export function obedient({ locked, locks, key, options }: Parts) {
  class Obedient {
    @locked(locks, key, options)
    async obey<T>(order: () => Promise<T>): Promise<T> {
      return order()
    }
  }
  return new Obedient()
}

/** Wrong uses of the decorator. Compilers refuse them, and so does the decorator itself. */
export const misplaced: Record<string, (parts: Parts) => unknown> = {
  getter: ({ locked, locks, key }) =>
    class {
      // @ts-expect-error
      @locked(locks, key)
      get wrong(): Promise<number> {
        return Promise.resolve(1)
      }
    },
  setter: ({ locked, locks, key }) =>
    class {
      // @ts-expect-error
      @locked(locks, key)
      set wrong(_: number) {}
    },
  field: ({ locked, locks, key }) =>
    class {
      // @ts-expect-error
      @locked(locks, key)
      wrong = async () => {}
    },
  accessor: ({ locked, locks, key }) =>
    class {
      // @ts-expect-error
      @locked(locks, key)
      accessor wrong = 1
    },
  class: ({ locked, locks, key }) => {
    // @ts-expect-error
    @locked(locks, key)
    class wrong {}
    return wrong
  },
}

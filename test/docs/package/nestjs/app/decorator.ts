import assert from 'node:assert/strict'
import { Injectable, SetMetadata } from '@nestjs/common'
import { Cron, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule'
import { LockArgumentError, LockClient } from 'redis-baton'
import { Locked, LockModule } from 'redis-baton/nestjs'
import { freshKey, granted, redis, withApp } from './kit.js'

const usual = () => LockModule.forRoot({ redis })

export async function keepsWhatOtherDecoratorsRecordedAboveAndBelow() {
  const [above, below] = [freshKey(), freshKey()]
  @Injectable()
  class Jobs {
    @SetMetadata('mark', 'above')
    @Cron('* * * * * *', { name: 'above' })
    @Locked(above)
    async above(_a: string, _b: string) {}

    @Locked(below)
    @SetMetadata('mark', 'below')
    @Cron('* * * * * *', { name: 'below' })
    async below(_a?: string) {}

    async plain() {}
  }
  assert.equal(Reflect.getMetadata('mark', Jobs.prototype.above), 'above')
  assert.equal(Reflect.getMetadata('mark', Jobs.prototype.below), 'below')
  assert.deepEqual(Reflect.getMetadata('design:paramtypes', Jobs.prototype, 'above'), [String, String])
  assert.deepEqual([Jobs.prototype.above.name, Jobs.prototype.above.length], ['above', 2])
  const kind = (name: 'above' | 'plain') => {
    const { enumerable, writable, configurable } = Object.getOwnPropertyDescriptor(Jobs.prototype, name) ?? {}
    return { enumerable, writable, configurable }
  }
  assert.deepEqual(kind('above'), kind('plain'))

  await withApp({ imports: [usual(), ScheduleModule.forRoot()], providers: [Jobs] }, async app => {
    const names = [...app.get(SchedulerRegistry).getCronJobs().keys()]
    assert.deepEqual(names.sort(), ['above', 'below'])
    const seen = granted(app.get(LockClient))
    const until = Date.now() + 5_000
    while (new Set(seen).size < 2 && Date.now() < until) await new Promise(resolve => setTimeout(resolve, 50))
    assert.deepEqual([...new Set(seen)].sort(), [above, below].sort())
  })
}

export async function takesALockOfAnyKind() {
  const key = freshKey()
  @Injectable()
  class Service {
    constructor(private readonly locks: LockClient) {}
    @Locked(
      function (this: Service, id: string) {
        return this.locks.semaphore(id, 3)
      },
      { permits: 2 },
    )
    async taken(id: string) {
      const { taken, permits } = await this.locks.semaphore(id, 3).inspect()
      return [taken, permits]
    }
  }
  await withApp({ imports: [usual()], providers: [Service] }, async app => {
    assert.deepEqual(await app.get(Service).taken(key), [2, 3])
    assert.deepEqual((await app.get(LockClient).semaphore(key, 3).inspect()).taken, 0)
  })
}

export async function reEntersAndPassesResultsAndErrorsOn() {
  const key = freshKey()
  @Injectable()
  class Service {
    constructor(readonly locks: LockClient) {}
    @Locked(key, { timeout: 2_000 })
    async outer(): Promise<string> {
      return `${await this.inner()} ${await this.locks.using(key, ({ via }) => via)}`
    }
    @Locked(key, { timeout: 2_000 })
    async inner() {
      return 'inner'
    }
    @Locked(key)
    async fails() {
      throw new RangeError('mine')
    }
  }
  await withApp({ imports: [usual()], providers: [Service] }, async app => {
    assert.equal(await app.get(Service).outer(), 'inner reentry')
    await assert.rejects(app.get(Service).fails(), new RangeError('mine'))
    assert.equal(await app.get(LockClient).isLocked(key), false)
  })
}

export async function refusesToStartWithoutTheModuleAndNamesIt() {
  @Injectable()
  class Orders {
    @Locked('any')
    async run() {}
    @Locked('any', { client: 'reports' })
    async report() {}
  }
  const start = (imports: []) => withApp({ imports, providers: [Orders] }, async () => {})
  await assert.rejects(start([]), (error: Error) => {
    assert.match(error.message, /Orders/)
    assert.match(error.message, /LockClient of @Locked, from LockModule\.forRoot\(\{ redis \}\)/)
    return true
  })
  await assert.rejects(start([usual()] as never), /LockModule\.forRoot\(\{ name: 'reports', redis \}\)/)
}

export async function saysSoWhereNestHasNotMadeTheObject() {
  class Orders {
    @Locked('any')
    async run() {}
  }
  await assert.rejects(new Orders().run(), (error: Error) => {
    assert.ok(error instanceof LockArgumentError)
    assert.match(
      error.message,
      /LockModule\.forRoot.* is undefined; expected a client that Nest has injected; let Nest create the Orders instead of calling its constructor$/,
    )
    return true
  })
}

export async function refusesWhatIsNoMethodOfObjectsAndABadKey() {
  const apply = Locked('any') as unknown as (...args: unknown[]) => void
  class Some {
    static whole() {}
    field = 1
  }
  const whole = Object.getOwnPropertyDescriptor(Some, 'whole')
  assert.throws(() => apply(Some, 'whole', whole), /@Locked whole is "static"; expected an instance method/)
  assert.throws(() => apply(Some.prototype, 'field', undefined), /@Locked field is undefined; expected a method/)
  assert.throws(() => apply(Some.prototype, 'get', { get: () => 1 }), /@Locked get is undefined; expected a method/)
  const standard = () => apply(async () => {}, { kind: 'method', name: 'run' })
  assert.throws(standard, /the kind of the decorator @Locked is "standard"; expected "legacy"/)
  assert.throws(() => Locked(''), LockArgumentError)
}

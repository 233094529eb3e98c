import assert from 'node:assert/strict'
import { Controller, Inject, Injectable, Scope } from '@nestjs/common'
import { ContextIdFactory } from '@nestjs/core'
import { LockClient } from 'redis-baton'
import { getLocksToken, InjectLocks, Locked, LockModule } from 'redis-baton/nestjs'
import { freshKey, granted, redis, withApp } from './kit.js'

const usual = () => LockModule.forRoot({ redis })

export async function injectsTheClientByItsClassAndByDecoratorsWithAndWithoutAName() {
  @Injectable()
  class Service {
    @InjectLocks('reports') readonly reports!: LockClient
    constructor(
      readonly byClass: LockClient,
      @InjectLocks() readonly byDecorator: LockClient,
      @InjectLocks('reports') readonly byName: LockClient,
    ) {}
  }
  const imports = [usual(), LockModule.forRoot({ name: 'reports', redis, prefix: 'reports' })]
  await withApp({ imports, providers: [Service] }, async app => {
    const { byClass, byDecorator, byName, reports } = app.get(Service)
    assert.ok(byClass instanceof LockClient)
    assert.equal(byClass, byDecorator)
    assert.equal(byClass, app.get(getLocksToken()))
    assert.ok(byName instanceof LockClient)
    assert.notEqual(byName, byClass)
    assert.equal(reports, byName)
    assert.equal(app.get(getLocksToken('reports')), byName)
  })
}

export async function locksByTheClientWithThatName() {
  const key = freshKey()
  @Injectable()
  class Service {
    @Locked(key)
    async usual() {}
    @Locked(key, { client: 'reports' })
    async report() {}
  }
  const imports = [usual(), LockModule.forRoot({ name: 'reports', redis, prefix: 'reports' })]
  await withApp({ imports, providers: [Service] }, async app => {
    const [usual, reports] = [granted(app.get(LockClient)), granted(app.get(getLocksToken('reports')))]
    await app.get(Service).report()
    assert.deepEqual([usual, reports], [[], [key]])
    await app.get(Service).usual()
    assert.deepEqual([usual, reports], [[key], [key]])
  })
}

export async function locksInProvidersOfEveryScopeAndInControllers() {
  class Work {
    @Locked((key: string) => key)
    async run(_key: string) {}
  }
  @Injectable()
  class Single extends Work {}
  @Injectable({ scope: Scope.REQUEST })
  class PerRequest extends Work {}
  @Injectable({ scope: Scope.TRANSIENT })
  class PerUse extends Work {}
  @Injectable()
  class User {
    constructor(
      readonly one: PerUse,
      @Inject(PerUse) readonly other: PerUse,
    ) {}
  }
  @Controller()
  class Routes extends Work {}

  const metadata = { imports: [usual()], providers: [Single, PerRequest, PerUse, User], controllers: [Routes] }
  await withApp(metadata, async app => {
    const seen = granted(app.get(LockClient))
    const contexts = [ContextIdFactory.create(), ContextIdFactory.create()]
    const requests = await Promise.all(contexts.map(context => app.resolve(PerRequest, context)))
    assert.notEqual(requests[0], requests[1])
    const { one, other } = app.get(User)
    const keys: string[] = []
    for (const object of [app.get(Single), ...requests, one, other, app.get(Routes)]) {
      const key = freshKey()
      keys.push(key)
      await object.run(key)
      assert.deepEqual(seen, keys)
    }
  })
}

export async function holdsForClassesThatInheritTheMethodOrOverrideIt() {
  const [base, derived] = [freshKey(), freshKey()]
  abstract class Base {
    @Locked(base)
    async run(): Promise<string> {
      return 'base'
    }
  }
  @Injectable()
  class Inherits extends Base {}
  @Injectable()
  class Overrides extends Base {
    override async run() {
      return 'unlocked'
    }
  }
  @Injectable()
  class Calls extends Base {
    @Locked(derived)
    override async run() {
      return `over ${await super.run()}`
    }
  }
  @Injectable()
  class OtherClient extends Base {
    @Locked(derived, { client: 'reports' })
    async report() {}
  }
  const imports = [usual(), LockModule.forRoot({ name: 'reports', redis })]
  await withApp({ imports, providers: [Inherits, Overrides, Calls, OtherClient] }, async app => {
    const [seen, reports] = [granted(app.get(LockClient)), granted(app.get(getLocksToken('reports')))]
    assert.equal(await app.get(Inherits).run(), 'base')
    assert.deepEqual(seen.splice(0), [base])
    assert.equal(await app.get(Overrides).run(), 'unlocked')
    assert.deepEqual(seen.splice(0), [])
    assert.equal(await app.get(Calls).run(), 'over base')
    assert.deepEqual(seen.splice(0), [derived, base])
    await app.get(OtherClient).report()
    await app.get(OtherClient).run()
    assert.deepEqual([seen, reports], [[base], [derived]])
  })
}

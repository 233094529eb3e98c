import assert from 'node:assert/strict'
import { Injectable, Module } from '@nestjs/common'
import { LockArgumentError, LockClient } from 'redis-baton'
import { LockModule, type LockModuleOptions, type LockModuleOptionsFactory } from 'redis-baton/nestjs'
import { freshKey, moduleWith, redis, withApp } from './kit.js'

@Injectable()
class Config {
  get(name: string): string {
    return name === 'REDIS_URL' ? redis : 'the configured label'
  }
}

@Module({ providers: [Config], exports: [Config] })
class ConfigModule {}

@Injectable()
class FromConfig implements LockModuleOptionsFactory {
  constructor(readonly config: Config) {}
  async createLockModuleOptions(): Promise<LockModuleOptions> {
    return { redis: this.config.get('REDIS_URL'), label: this.config.get('LABEL') }
  }
}

async function labelIn(module: ReturnType<typeof LockModule.forRootAsync>): Promise<string | undefined> {
  const key = freshKey()
  return withApp({ imports: [module] }, async app => {
    await using _held = await app.get(LockClient).lock(key)
    return (await app.get(LockClient).inspect(key)).label
  })
}

export async function isMadeByAFactoryWithWhatItInjects() {
  const useFactory = async (config: Config) => ({ redis: config.get('REDIS_URL'), label: config.get('LABEL') })
  const module = LockModule.forRootAsync({ imports: [ConfigModule], inject: [Config], useFactory })
  assert.equal(await labelIn(module), 'the configured label')
}

export async function isMadeByAClass() {
  const module = LockModule.forRootAsync({ imports: [ConfigModule], useClass: FromConfig })
  assert.equal(await labelIn(module), 'the configured label')
}

export async function refusesToBeMadeOfNothing() {
  assert.throws(() => LockModule.forRootAsync({}), /one of useFactory, useClass and useExisting/)
  await assert.rejects(
    withApp({ imports: [LockModule] }, async () => {}),
    /LockModule/,
  )
}

export async function refusesWrongOptionsWhenTheApplicationStarts() {
  const start = (options: object) => {
    const imports = [LockModule.forRoot({ redis, ...options })]
    return withApp({ imports }, async () => {})
  }
  await assert.rejects(start({ timout: 5 }), /timout is 5; expected only these options: /)
  await assert.rejects(start({ drain: -1 }), LockArgumentError)
  await assert.rejects(start({ redis: undefined }), LockArgumentError)
}

export async function closesItsOwnClientAndReleasesWhatIsHeld() {
  const key = freshKey()
  await using others = new LockClient(redis)
  const { locks, lease } = await withApp({ imports: [LockModule.forRoot({ redis, drain: 50 })] }, async app => {
    const locks = app.get(LockClient)
    return { locks, lease: await locks.lock(key) }
  })
  assert.equal(lease.held, false)
  assert.equal(await others.isLocked(key), false)
  await assert.rejects(locks.lock(key), { code: 'ERR_LOCK_CLOSED' })
}

export async function leavesAClientAloneThatItWasGiven() {
  const key = freshKey()
  await using mine = new LockClient(redis)
  const lease = await withApp({ imports: [LockModule.forRoot({ redis: mine })] }, async app => {
    assert.equal(app.get(LockClient), mine)
    return mine.lock(key)
  })
  assert.equal(lease.held, true)
  assert.equal(await lease.release(), true)
  const both = LockModule.forRoot({ redis: mine, lease: 5_000 })
  await assert.rejects(
    withApp({ imports: [both] }, async () => {}),
    /lease is 5000; expected no such option/,
  )
}

export async function canBeSeveralEachForTheModulesThatImportIt() {
  @Injectable()
  class One {
    constructor(readonly locks: LockClient) {}
  }
  @Injectable()
  class Two {
    constructor(readonly locks: LockClient) {}
  }
  const local = (label: string) => LockModule.forRoot({ redis, isGlobal: false, label })
  const imports = [
    moduleWith({ imports: [local('one')], providers: [One] }),
    moduleWith({ imports: [local('two')], providers: [Two] }),
  ]
  const key = freshKey()
  await withApp({ imports }, async app => {
    const [one, two] = [app.get(One, { strict: false }).locks, app.get(Two, { strict: false }).locks]
    assert.notEqual(one, two)
    await using _held = await one.lock(key)
    assert.equal((await two.inspect(key)).label, 'one')
  })
  @Injectable()
  class Outside {
    constructor(readonly locks: LockClient) {}
  }
  await assert.rejects(withApp({ imports: [local('one')], providers: [] }, async app => app.get(Outside)))
  const outside = { imports: [moduleWith({ imports: [local('one')] })], providers: [Outside] }
  await assert.rejects(
    withApp(outside, async () => {}),
    /Outside/,
  )
}

/** `LockModule`: makes a client when the application starts, and closes it when that ends. */
import {
  type DynamicModule,
  type FactoryProvider,
  Inject,
  Module,
  type ModuleMetadata,
  type Provider,
  type Type,
} from '@nestjs/common'
import { APP_FILTER } from '@nestjs/core'
import { LockClient } from '../client.ts'
import { LockArgumentError } from '../errors.ts'
import { type ClientOptions, drainOf } from '../options.ts'
import type { RedisSource } from '../redis/clients.ts'
import { LockExceptionFilter } from './filter.ts'
import { getLocksToken } from './inject.ts'

/** For how long those who hold are waited for, in ms: `docker stop` kills after ten seconds. */
const DRAIN = 5_000

/**
 * What the client is made of: the options of a `LockClient`, with its Redis and its end. Times are ms.
 * @since 0.2.0
 */
export interface LockModuleOptions extends ClientOptions {
  /**
   * What `new LockClient` takes, or a `LockClient` that you have made. An instance stays yours: you close it.
   * @since 0.2.0
   */
  redis: RedisSource | LockClient
  /**
   * When the application shuts down, those who hold are given this many ms to release, while their leases are renewed.
   * @defaultValue `5_000`
   * @since 0.2.0
   */
  drain?: number | undefined
}

/**
 * What of the module is known before its options are.
 * @since 0.2.0
 */
export interface LockModuleSettings {
  /**
   * Tells several clients apart: `@InjectLocks('reports')`, `@Locked(key, { client: 'reports' })`.
   * @defaultValue none: the client is the one that is injected as `LockClient`
   * @since 0.2.0
   */
  name?: string | undefined
  /**
   * Whether the client can be injected in every module, or only in those that import this one.
   * @defaultValue `true`
   * @since 0.2.0
   */
  isGlobal?: boolean | undefined
  /**
   * Whether `LockExceptionFilter` answers HTTP requests that failed because of a lock, on every route.
   * @defaultValue `true`
   * @since 0.2.0
   */
  filter?: boolean | undefined
}

/**
 * A class that makes the options, for `useClass` and `useExisting` of `LockModule.forRootAsync`.
 * @since 0.2.0
 */
export interface LockModuleOptionsFactory {
  /**
   * Called once, when the application starts.
   * @since 0.2.0
   */
  createLockModuleOptions(): LockModuleOptions | Promise<LockModuleOptions>
}

/**
 * How the options come about. One of `useFactory`, `useClass` and `useExisting` is there.
 * @since 0.2.0
 */
export interface LockModuleAsyncOptions extends LockModuleSettings {
  /**
   * Modules that provide what is injected.
   * @defaultValue none
   * @since 0.2.0
   */
  imports?: ModuleMetadata['imports'] | undefined
  /**
   * What `useFactory` is called with.
   * @defaultValue none
   * @since 0.2.0
   */
  inject?: FactoryProvider['inject'] | undefined
  /**
   * Makes the options.
   * @defaultValue none
   * @since 0.2.0
   */
  useFactory?: FactoryProvider<LockModuleOptions>['useFactory'] | undefined
  /**
   * A class that makes the options, of which an object is made for it.
   * @defaultValue none
   * @since 0.2.0
   */
  useClass?: Type<LockModuleOptionsFactory> | undefined
  /**
   * A provider that makes the options, and is there already.
   * @defaultValue none
   * @since 0.2.0
   */
  useExisting?: Type<LockModuleOptionsFactory> | undefined
}

/**
 * A Nest module with a `LockClient`, which is injected as such. When the application shuts down it is closed: calls that wait
 * reject with LockClosedError at once, so that requests end; those who hold have `drain` ms; what is held after that is lost,
 * and told so. `app.enableShutdownHooks()` has Nest do so on signals.
 * @since 0.2.0
 */
export class LockModule {
  readonly #tenure: Tenure
  #closed: Promise<void> | undefined

  /** Called by Nest. @internal */
  constructor(tenure: Tenure) {
    this.#tenure = tenure
  }

  /**
   * With options that are known.
   * @throws LockArgumentError, when the application starts, if an option is wrong
   * @since 0.2.0
   */
  static forRoot(options: LockModuleOptions & LockModuleSettings): DynamicModule {
    const { name, isGlobal, filter, ...known } = options
    return moduleOf({ name, isGlobal, filter }, token => [{ provide: token, useFactory: () => known }])
  }

  /**
   * With options that are made when the application starts.
   * @throws LockArgumentError if nothing makes them
   * @since 0.2.0
   */
  static forRootAsync(options: LockModuleAsyncOptions): DynamicModule {
    return { ...moduleOf(options, token => providersOf(token, options)), imports: options.imports ?? [] }
  }

  /**
   * Nest stops to listen only after this, and then waits for requests to end. Those that wait for a lock end by it; for those
   * that hold one nobody waits here. @internal
   */
  beforeApplicationShutdown(): void {
    this.#closed = this.#tenure.end()
  }

  /** @internal */
  async onApplicationShutdown(): Promise<void> {
    await this.#closed
  }
}

/** The client, and what is to be done with it at the end: nothing, if it was handed over. */
class Tenure {
  readonly client: LockClient
  readonly end: () => Promise<void>

  constructor({ redis, drain = DRAIN, ...options }: LockModuleOptions) {
    drainOf({ drain })
    if (redis instanceof LockClient) {
      const [option] = Object.entries(options)
      if (option)
        throw new LockArgumentError(...option, 'no other option beside a LockClient, which already has its own')
      this.client = redis
      this.end = async () => {}
    } else {
      this.client = new LockClient(redis, options)
      this.end = () => this.client.close({ drain })
    }
  }
}

Module({})(LockModule)
Inject(Tenure)(LockModule, undefined, 0)

let modules = 0

function moduleOf(settings: LockModuleSettings, options: (token: symbol) => Provider[]): DynamicModule {
  const { name, isGlobal = true, filter = true } = settings
  // Before version 11, Nest takes two modules for one if they look the same as text, as they would here.
  const ours = Symbol(`LockModule options ${++modules}`)
  const locks = getLocksToken(name)
  return {
    module: LockModule,
    global: isGlobal,
    providers: [
      ...options(ours),
      { provide: Tenure, useFactory: (options: LockModuleOptions) => new Tenure(options), inject: [ours] },
      { provide: locks, useFactory: (tenure: Tenure) => tenure.client, inject: [Tenure] },
      ...(filter ? [{ provide: APP_FILTER, useClass: LockExceptionFilter }] : []),
    ],
    exports: [locks],
  }
}

function providersOf(token: symbol, options: LockModuleAsyncOptions): Provider[] {
  const { useFactory, useClass, useExisting, inject = [] } = options
  if (useFactory) return [{ provide: token, useFactory, inject }]
  const factory = useClass ?? useExisting
  if (!factory) {
    throw new LockArgumentError('forRootAsync', options, 'one of useFactory, useClass and useExisting')
  }
  const made = {
    provide: token,
    useFactory: (maker: LockModuleOptionsFactory) => maker.createLockModuleOptions(),
    inject: [factory],
  }
  return useClass ? [{ provide: useClass, useClass }, made] : [made]
}

/** `LockModule`: makes a client when the application starts, and closes it when the application shuts down. */
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
import type { MemoryStore } from '../memory/store.ts'
import type { ClientOptions } from '../options.ts'
import type { RedisSource } from '../redis/clients.ts'
import { drainOf } from '../settings.ts'
import { LockExceptionFilter } from './filter.ts'
import { getLocksToken } from './inject.ts'

/**
 * How many ms holders get to release their locks at shutdown. This is well below the 10 s after which `docker stop`
 * kills the process.
 */
const DRAIN = 5_000

/**
 * The options of the `LockClient` that `LockModule` makes: its Redis, the client options, and `drain`. Times are in ms.
 * @since 0.2.0
 */
export interface LockModuleOptions extends ClientOptions {
  /**
   * The first argument of `new LockClient`, or a `LockClient` that you have made. The module does not close a client
   * that you have made.
   * @since 0.2.0
   */
  redis: RedisSource | MemoryStore | LockClient
  /**
   * When the application shuts down, holders get this many ms to release their locks. Their leases are renewed
   * meanwhile.
   * @defaultValue `5_000`
   * @since 0.2.0
   */
  drain?: number | undefined
}

/**
 * The settings of `LockModule` that must be known before `useFactory` or `useClass` makes the other options.
 * @since 0.2.0
 */
export interface LockModuleSettings {
  /**
   * The client's name, for an application with several clients. The name `'reports'` is used in
   * `@InjectLocks('reports')` and `@Locked(key, { client: 'reports' })`.
   * @defaultValue none: the client is injected as `LockClient`
   * @since 0.2.0
   */
  name?: string | undefined
  /**
   * Whether the client can be injected in every module. If false, only modules that import this `LockModule` can inject
   * the client.
   * @defaultValue `true`
   * @since 0.2.0
   */
  isGlobal?: boolean | undefined
  /**
   * Whether `LockExceptionFilter` is used on every route. This filter answers HTTP requests that failed because of a
   * lock.
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
   * Returns the options. Nest calls this method once, when the application starts.
   * @since 0.2.0
   */
  createLockModuleOptions(): LockModuleOptions | Promise<LockModuleOptions>
}

/**
 * The settings of `LockModule.forRootAsync`. One of `useFactory`, `useClass` and `useExisting` must be given; it makes
 * the options.
 * @since 0.2.0
 */
export interface LockModuleAsyncOptions extends LockModuleSettings {
  /**
   * The modules that export the providers of `inject`, `useClass` or `useExisting`.
   * @defaultValue none
   * @since 0.2.0
   */
  imports?: ModuleMetadata['imports'] | undefined
  /**
   * The tokens of the providers that `useFactory` gets as its arguments.
   * @defaultValue none
   * @since 0.2.0
   */
  inject?: FactoryProvider['inject'] | undefined
  /**
   * A function that makes the options.
   * @defaultValue none
   * @since 0.2.0
   */
  useFactory?: FactoryProvider<LockModuleOptions>['useFactory'] | undefined
  /**
   * A class that makes the options. Nest creates an instance of it.
   * @defaultValue none
   * @since 0.2.0
   */
  useClass?: Type<LockModuleOptionsFactory> | undefined
  /**
   * The token of an existing provider that makes the options.
   * @defaultValue none
   * @since 0.2.0
   */
  useExisting?: Type<LockModuleOptionsFactory> | undefined
}

/**
 * A Nest module that provides a `LockClient` for injection. When the application shuts down, the module closes the
 * client. Waiting calls reject with LockClosedError at once, so that their requests end. Holders get `drain` ms to
 * release their locks. Then every remaining hold is lost, and its `signal` aborts. Without `app.enableShutdownHooks()`,
 * Nest does not shut down on process signals.
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
   * Makes the module from the given options.
   * @throws LockArgumentError when an option is wrong. The error is thrown when the application starts
   * @since 0.2.0
   */
  static forRoot(options: LockModuleOptions & LockModuleSettings): DynamicModule {
    const { name, isGlobal, filter, ...known } = options
    return moduleOf({ name, isGlobal, filter }, token => [{ provide: token, useFactory: () => known }])
  }

  /**
   * Makes the module. The options are made later, when the application starts.
   * @throws LockArgumentError if none of `useFactory`, `useClass` and `useExisting` is given
   * @since 0.2.0
   */
  static forRootAsync(options: LockModuleAsyncOptions): DynamicModule {
    return { ...moduleOf(options, token => providersOf(token, options)), imports: options.imports ?? [] }
  }

  /**
   * Starts to close the client. Calls that wait for a lock then reject, so that their requests end. Requests that hold
   * a lock may take longer, but this hook must not wait for them. Nest stops listening only after the hook has
   * returned. If the hook waited, Nest would accept new requests meanwhile. After the hook, Nest waits for open
   * requests to end.
   * @internal
   */
  beforeApplicationShutdown(): void {
    this.#closed = this.#tenure.end()
  }

  /** @internal */
  async onApplicationShutdown(): Promise<void> {
    await this.#closed
  }
}

/**
 * The client of a module, and how it is closed at shutdown. A client that the user made is not closed. The client is
 * made when it is asked for: if a test overrides the provider, it is never made, and nothing connects to Redis.
 */
class Tenure {
  readonly #options: LockModuleOptions
  #made: LockClient | undefined

  constructor(options: LockModuleOptions) {
    this.#options = options
  }

  get client(): LockClient {
    const { redis, drain = DRAIN, ...options } = this.#options
    drainOf({ drain })
    if (!(redis instanceof LockClient)) {
      this.#made ??= new LockClient(redis, options)
      return this.#made
    }
    const [option] = Object.entries(options)
    if (!option) return redis
    throw new LockArgumentError(
      ...option,
      'no such option, because `redis` is a LockClient, which already has its options',
    )
  }

  async end(): Promise<void> {
    await this.#made?.close({ drain: this.#options.drain ?? DRAIN })
  }
}

Module({})(LockModule)
Inject(Tenure)(LockModule, undefined, 0)

let modules = 0

function moduleOf(settings: LockModuleSettings, options: (token: symbol) => Provider[]): DynamicModule {
  const { name, isGlobal = true, filter = true } = settings
  // Before version 11, Nest treats two modules as one if they serialize to the same text. The number makes the text of
  // each LockModule different.
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
    throw new LockArgumentError('forRootAsync', options, 'an object with one of useFactory, useClass and useExisting')
  }
  const made = {
    provide: token,
    useFactory: (maker: LockModuleOptionsFactory) => maker.createLockModuleOptions(),
    inject: [factory],
  }
  return useClass ? [{ provide: useClass, useClass }, made] : [made]
}

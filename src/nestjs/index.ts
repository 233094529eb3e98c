/**
 * redis-baton/nestjs: a module for NestJS 10 or newer. The module needs `@nestjs/common`, `@nestjs/core` and
 * `reflect-metadata`, which every Nest application has. Only an import of `redis-baton/nestjs` loads the module.
 *
 * docs/nestjs.md shows how to use it.
 * @module redis-baton/nestjs
 * @packageDocumentation
 */
export { LockExceptionFilter } from './filter.ts'
export { getLocksToken, InjectLocks } from './inject.ts'
export { Locked, type LockedDecorator, type LockedOptions } from './locked.ts'
export {
  LockModule,
  type LockModuleAsyncOptions,
  type LockModuleOptions,
  type LockModuleOptionsFactory,
  type LockModuleSettings,
} from './module.ts'

/**
 * redis-baton/nestjs: the lock as a module of NestJS 10 or newer. Needs `@nestjs/common`, `@nestjs/core` and `reflect-metadata`,
 * which every application of Nest has; nothing of this is loaded unless somebody imports it.
 *
 * docs/nestjs.md shows how it is used.
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

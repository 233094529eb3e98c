/** A Nest application as users write it. It is compiled and run with each version of Nest, in a process of its own. */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  Body,
  type CanActivate,
  Controller,
  type ExecutionContext,
  HttpCode,
  Injectable,
  Module,
  Param,
  Post,
  SetMetadata,
  UseGuards,
} from '@nestjs/common'
import { NestFactory, Reflector } from '@nestjs/core'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { Redis } from 'ioredis'
import { LockClient } from 'redis-baton'
import { Locked, LockModule } from 'redis-baton/nestjs'

const { REDIS_URL = '', ADAPTER, FILTER, DRAIN } = process.env
const redis = new Redis(REDIS_URL)
const keyOf = (id: string) => `nest:${id}`

@Injectable()
class Orders {
  constructor(private readonly locks: LockClient) {}

  /** Without the lock, this method would lose concurrent increments. */
  @Locked((id: string) => keyOf(id))
  async add(id: string): Promise<number> {
    const before = Number(await redis.get(`count:${id}`))
    await sleep(10)
    await redis.set(`count:${id}`, before + 1)
    return before + 1
  }

  @Locked(keyOf, { timeout: 1_000 })
  async impatient(_id: string): Promise<void> {}

  @Locked(keyOf, { maxWaiters: 0 })
  async crowded(_id: string): Promise<void> {}

  @Locked(keyOf, { client: 'away' })
  async away(_id: string): Promise<void> {}

  @Locked(keyOf)
  async work(id: string, ms: number): Promise<string> {
    return this.locks.using(keyOf(id), async ({ via, signal }) => {
      await sleep(ms, undefined, { signal })
      return via
    })
  }

  @Locked(keyOf, { lease: 200 })
  async overlong(_id: string): Promise<void> {
    await sleep(400)
  }
}

@Injectable()
class OnlyMembers implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest()
    return request.headers['x-role'] === this.reflector.get('role', context.getHandler())
  }
}

@Controller('orders/:id')
class OrdersController {
  constructor(private readonly orders: Orders) {}

  @Post('add')
  add(@Param('id') id: string) {
    return this.orders.add(id).then(count => ({ count }))
  }

  @Post('impatient')
  impatient(@Param('id') id: string) {
    return this.orders.impatient(id)
  }

  @Post('crowded')
  crowded(@Param('id') id: string) {
    return this.orders.crowded(id)
  }

  @Post('away')
  away(@Param('id') id: string) {
    return this.orders.away(id)
  }

  @Post('work')
  work(@Param('id') id: string, @Body() { ms }: { ms: number }) {
    return this.orders.work(id, ms).then(via => ({ via }))
  }

  @Post('overlong')
  overlong(@Param('id') id: string) {
    return this.orders.overlong(id)
  }

  @Post('above')
  @HttpCode(202)
  @UseGuards(OnlyMembers)
  @SetMetadata('role', 'member')
  @Locked(keyOf, { timeout: 1_000 })
  async above(@Param('id') id: string) {
    return { id }
  }

  @Locked(keyOf, { timeout: 1_000 })
  @Post('below')
  @HttpCode(202)
  @UseGuards(OnlyMembers)
  @SetMetadata('role', 'member')
  async below(@Param('id') id: string) {
    return { id }
  }
}

@Module({
  imports: [
    LockModule.forRootAsync({
      filter: FILTER !== 'off',
      useFactory: () => ({ redis: REDIS_URL, drain: Number(DRAIN ?? 5_000), label: 'secret-host:1' }),
    }),
    LockModule.forRoot({ name: 'away', filter: false, redis: 'redis://127.0.0.1:1', outageTimeout: 100 }),
  ],
  controllers: [OrdersController],
  providers: [Orders],
})
class AppModule {}

async function main() {
  const logger = ['error', 'warn'] as const
  const app = await (ADAPTER === 'fastify'
    ? NestFactory.create(AppModule, new FastifyAdapter(), { logger: [...logger] })
    : NestFactory.create(AppModule, { logger: [...logger] }))
  app.enableShutdownHooks()
  await app.listen(0, '127.0.0.1')
  console.log(`listening on ${await app.getUrl()}`)
}

main()

/**
 * A NestJS server; several instances run side by side. Withdrawals from one account take turns across all instances. A
 * request that does not get the lock in time is answered with 423. When the server stops, requests that hold a lock may
 * finish.
 *
 * With Nest's own compiler, `@Inject` and `@InjectLocks()` can be left out of constructors. That compiler emits the
 * types of the parameters, and Nest injects by type. tsx does not emit them.
 */
import { setTimeout as work } from 'node:timers/promises'
import {
  BadRequestException,
  Body,
  ConflictException,
  Controller,
  HttpCode,
  Inject,
  Injectable,
  Module,
  Param,
  Post,
} from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { Redis } from 'ioredis'
import { LockClient } from 'redis-baton'
import { InjectLocks, Locked, LockModule } from 'redis-baton/nestjs'

const { REDIS_URL = 'redis://127.0.0.1:6379', PORT = '3000', MAX_WAIT_MS = '2000', PAYMENT_MS = '50' } = process.env

/**
 * In this example the accounts are in Redis. As a database should, this script refuses a write with an older fencing
 * token.
 */
const STORE = `
  -- KEYS[1] the account; ARGV[1] fencing token, ARGV[2] balance
  if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'token') or 0) then return 0 end
  redis.call('HSET', KEYS[1], 'token', ARGV[1], 'balance', ARGV[2])
  return 1
`

const keyOf = (account: string) => `example:account:${account}`

@Injectable()
class Accounts {
  constructor(
    @Inject(Redis) private readonly redis: Redis,
    @InjectLocks() private readonly locks: LockClient,
  ) {}

  @Locked((account: string) => keyOf(account), { fair: true, timeout: Number(MAX_WAIT_MS) })
  async withdraw(account: string, amount: number): Promise<number> {
    const balance = Number((await this.redis.hget(keyOf(account), 'balance')) ?? 100) - amount
    if (balance < 0) throw new ConflictException('not enough money')
    await work(Number(PAYMENT_MS))
    await this.store(account, balance)
    return balance
  }

  /**
   * A decorated method does not receive the lease. To get the fencing token, take the lock again: a re-entry has the
   * same token.
   */
  private store(account: string, balance: number): Promise<void> {
    return this.locks.using(keyOf(account), async ({ fencingToken }) => {
      const stored = await this.redis.eval(STORE, 1, keyOf(account), fencingToken, balance)
      if (!stored) throw new ConflictException('somebody else has had the account in the meantime')
    })
  }
}

@Controller('accounts/:account')
class AccountsController {
  constructor(@Inject(Accounts) private readonly accounts: Accounts) {}

  @Post('withdrawals')
  @HttpCode(200)
  async withdraw(@Param('account') account: string, @Body() body: { amount?: unknown }) {
    if (typeof body.amount !== 'number') throw new BadRequestException('amount is a number')
    return { balance: await this.accounts.withdraw(account, body.amount) }
  }
}

@Module({
  providers: [{ provide: Redis, useFactory: () => new Redis(REDIS_URL) }],
  exports: [Redis],
})
class RedisModule {}

@Module({
  imports: [
    RedisModule,
    // The lock client makes its own connection to the same server. Closing the lock client leaves the application's
    // connection open.
    LockModule.forRootAsync({
      imports: [RedisModule],
      inject: [Redis],
      useFactory: (redis: Redis) => ({ redis, drain: 8_000 }),
    }),
  ],
  controllers: [AccountsController],
  providers: [Accounts],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['warn', 'error'] })
// Without `enableShutdownHooks`, no signal closes the application, and held locks become free only when their leases
// end.
app.enableShutdownHooks()
await app.listen(Number(PORT), '127.0.0.1')
console.log(`listening on ${await app.getUrl()}`)

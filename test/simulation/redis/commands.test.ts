/**
 * Tests that the commands in memory do the same as the commands of Redis. Random sequences of commands, called from
 * Lua, must return the same replies in memory and on a real server. For errors, only the code is compared.
 */
import { expect, test } from 'vitest'
import { Random } from '../../kit/random.ts'
import { freshKey, plainRedis } from '../../kit/redis.ts'
import { commands } from './commands.ts'
import { FakeRedis } from './redis.ts'

const SEQUENCES = 300
const STEPS = 50

/**
 * A script that calls the commands in ARGV, and returns each reply as Lua sees it. Before each command, ARGV has the
 * number of its words.
 */
const CALLER = `
local function told(reply)
  if type(reply) ~= 'table' then return type(reply) .. ' ' .. tostring(reply) end
  if reply.err then return 'error ' .. string.match(reply.err, '^%S+') end
  if reply.ok then return 'status ' .. reply.ok end
  local list = { 'list' }
  for i = 1, #reply do list[i + 1] = told(reply[i]) end
  return table.concat(list, ' | ')
end
local replies, at = {}, 1
while ARGV[at] do
  local size = tonumber(ARGV[at])
  replies[#replies + 1] = told(redis.pcall(unpack(ARGV, at + 1, at + size)))
  at = at + 1 + size
end
return replies`

const LATER = 4_000_000_000_000

class Words {
  readonly random: Random
  readonly #keys: readonly string[]

  constructor(random: Random, keys: readonly string[]) {
    this.random = random
    this.#keys = keys
  }

  readonly key = () => this.random.pick(this.#keys)
  readonly field = () => this.random.pick(['f', 'g', 'h', 'hold:1', ''])
  /** Members with the same score are ordered by their bytes. So these members differ in case, length and encoding. */
  readonly member = () => this.random.pick(['a', 'B', 'ab', 'a:', 'é', 'z', '\u{1f512}'])
  readonly score = () =>
    this.random.pick(['1', '1', '2', '2.5', '-3', '1750000000000001', '+inf', '-inf', '1e3', 'nan?'])
  readonly edge = () => this.random.pick(['-inf', '+inf', '1', '(1', '2', '(2.5', '(-inf', '1750000000000001', '(x'])
  readonly rank = () => this.random.pick(['0', '1', '2', '-1', '-2', '-9', '9', 'x'])
  readonly value = () => this.random.pick(['1', '17', '-5', '0.5', '007', 'text', '9223372036854775807', 'é', ''])
  readonly until = () => this.random.pick(['1', '-1', String(LATER), String(LATER + 1), 'soon'])

  maybe(...words: string[]): string[] {
    return this.random.chance(0.4) ? words : []
  }

  some(...makers: (() => string)[]): string[] {
    return Array.from({ length: this.random.int(1, 3) }, () => makers.map(make => make())).flat()
  }
}

/** Random arguments for each command, including invalid ones. */
const makers: Record<string, (w: Words) => string[]> = {
  EXISTS: w => w.some(w.key),
  DEL: w => [w.key()],
  UNLINK: w => w.some(w.key).slice(0, 2),
  PEXPIREAT: w => [w.key(), w.until()],
  PEXPIRETIME: w => [w.key()],
  GET: w => [w.key()],
  SET: w => [w.key(), w.value()],
  HSET: w => [w.key(), ...w.some(w.field, w.value), ...(w.random.chance(0.1) ? ['odd'] : [])],
  HGET: w => [w.key(), w.field()],
  HMGET: w => [w.key(), ...w.some(w.field)],
  HGETALL: w => [w.key()],
  HDEL: w => [w.key(), ...w.some(w.field)],
  HEXISTS: w => [w.key(), w.field()],
  HKEYS: w => [w.key()],
  HLEN: w => [w.key()],
  HINCRBY: w => [w.key(), w.field(), w.value()],
  ZADD: w => [w.key(), ...w.maybe(w.random.pick(['NX', 'XX', 'nx'])), ...w.maybe('XX'), ...w.some(w.score, w.member)],
  ZSCORE: w => [w.key(), w.member()],
  ZRANK: w => [w.key(), w.member()],
  ZCARD: w => [w.key()],
  ZCOUNT: w => [w.key(), w.edge(), w.edge()],
  ZRANGE: w => [w.key(), w.rank(), w.rank(), ...w.maybe('WITHSCORES')],
  ZREVRANGE: w => [w.key(), w.rank(), w.rank(), ...w.maybe('withscores')],
  ZRANGEBYSCORE: w => [w.key(), w.edge(), w.edge(), ...w.maybe('LIMIT', w.rank(), w.rank()), ...w.maybe('WITHSCORES')],
  ZREM: w => [w.key(), ...w.some(w.member)],
  ZREMRANGEBYSCORE: w => [w.key(), w.edge(), w.edge()],
  ZREMRANGEBYRANK: w => [w.key(), w.rank(), w.rank()],
  ZPOPMIN: w => [w.key(), ...w.maybe(w.rank())],
}

/** These commands are drawn more often, because the other commands read what these commands write. */
const frequent = ['HSET', 'ZADD', 'ZADD', 'ZADD']

test('every command is tested', () => {
  const { TIME, ...timeless } = Object.fromEntries(commands)
  expect(TIME).toBeDefined()
  expect(Object.keys(makers).sort()).toEqual(Object.keys(timeless).sort())
})

test('random commands return the replies of a real server', async () => {
  const redis = plainRedis()
  const memory = new FakeRedis({ micros: Date.now() * 1_000 }, () => 0)
  for (let seed = 1; seed <= SEQUENCES; seed++) {
    const keys = ['h', 'z', 's'].map(freshKey)
    const words = new Words(new Random(seed), keys)
    const calls = Array.from({ length: STEPS }, () => {
      const name = words.random.chance(0.3) ? words.random.pick(frequent) : words.random.pick(Object.keys(makers))
      return [name, ...makers[name]!(words)]
    })
    const argv = calls.flatMap(call => [String(call.length), ...call])
    const said = (replies: unknown) => calls.map((call, i) => `${call.join(' ')} → ${(replies as string[])[i]}`)
    expect(said(memory.eval(CALLER, keys, argv)), `seed ${seed}`).toEqual(
      said(await redis.eval(CALLER, keys.length, ...keys, ...argv)),
    )
    await redis.del(...keys)
  }
})

test('a key expires after the millisecond given to PEXPIREAT, not at its beginning', () => {
  const clock = { micros: 1_000_000_000 }
  const memory = new FakeRedis(clock, () => 0)
  const run = (...call: string[]) => memory.eval('return redis.call(unpack(ARGV))', [], call)
  run('HSET', 'k', 'f', 'v')
  run('PEXPIREAT', 'k', '1000010')
  clock.micros = 1_000_010_999
  expect(run('HGET', 'k', 'f')).toBe('v')
  expect(run('TIME')).toEqual(['1000', '10999'])
  clock.micros = 1_000_011_000
  expect(run('HGET', 'k', 'f')).toBeNull()
  expect(memory.keys.names).toEqual([])
})

test('a script cannot catch the error for a missing command or option', () => {
  const memory = new FakeRedis({ micros: 1_000 }, () => 0)
  const unknown = (lua: string) => () => memory.eval(lua, [], [])
  expect(unknown("return redis.pcall('HSETNX', 'k', 'f', 'v')")).toThrow('has no command HSETNX')
  expect(unknown("return pcall(redis.call, 'ZADD', 'k', 'GT', '1', 'm')")).toThrow('has no ZADD with GT')
  expect(unknown("return redis.call('ZRANGE', 'k', '0', '-1', 'REV')")).toThrow('has no range with REV')
  expect(unknown('return cjson.encode({})')).toThrow("nonexistent global variable 'cjson'")
})

/**
 * Tests that Lua in WebAssembly works like Lua in Redis: numbers, strings, replies and errors of scripts are the same.
 */
import { expect, test } from 'vitest'
import { freshKey, plainRedis } from '../../kit/redis.ts'
import { FakeRedis } from './redis.ts'

const memory = new FakeRedis({ micros: 1_750_000_000_000_000 }, () => 0)

/** Each sample runs as a script of its own, with a new key as KEYS[1] and "Grüße" as ARGV[1]. */
const samples = [
  // Samples of numbers as text. Some are as long as a token, which has 16 digits.
  "return { '' .. 1750000000000, '' .. 99999999999999, '' .. 1e14, '' .. 1e15, tostring(1 / 3), tostring(-0.5) }",
  "return string.format('%.0f %5.1f %s %%d', 1750000000000001, 2.25, 1e14)",
  "return { tostring(1 / 0), tostring(-1 / 0), tonumber('0x10'), tonumber(' 12 '), tonumber('1e3'), tonumber('12a') or 'no' }",
  "return { '10' + 5, '3' * '4', 7 % 3, -7 % 3, 2 ^ 53, math.floor(-1.5), math.ceil(1.2), math.max(1, 9, 3) }",
  // Samples of replies. Numbers are truncated. A list ends before the first nil, but false does not end it.
  'return 2.9',
  'return -2.9',
  'return 1e15',
  "return { 1, 2.5, -2.5, true, false, 'x', { 3, 'y', {} } }",
  'return { 1, nil, 3 }',
  'return nil',
  'return false',
  'return true',
  'return {}',
  'return function() end',
  // Samples of functions on strings. In Lua, strings consist of bytes. Some characters of ARGV[1] have two bytes.
  'return { #ARGV[1], string.sub(ARGV[1], 1, 2), string.sub(ARGV[1], 5), string.byte(ARGV[1], 3) }',
  "return { string.match('ab 12 cd', '^(%a+) (%d+)'), string.rep('-', 16), ('x'):upper(), string.find('a.b', '.', 1, true) }",
  "return { string.gsub('hello', 'l', 'L') }",
  "local all = {} for word in string.gmatch('a b c', '%a') do all[#all + 1] = word end return all",
  "return { table.concat({ 1, 2, 'x' }, ','), #KEYS, #ARGV, select('#', nil, nil), type(next({})) }",
  // Samples of commands: their arguments are numbers and strings, and Lua uses or returns their replies.
  "redis.call('HSET', KEYS[1], 1, 1750000000000001, 2, 0.5, 3, -17, 4, 2 ^ 53) return redis.call('HMGET', KEYS[1], 1, 2, 3, 4, 5)",
  "local old = redis.call('HGET', KEYS[1], 'f') return { type(old), tostring(old) }",
  "local set = redis.call('SET', KEYS[1], ARGV[1]) return { type(set), set.ok, redis.call('GET', KEYS[1]) }",
  "return redis.call('SET', KEYS[1], 'v')",
  "redis.call('ZADD', KEYS[1], 1750000000000001, 'm') return redis.call('ZSCORE', KEYS[1], 'm') + 1",
  "redis.call('ZADD', KEYS[1], 1.5, 'm') return redis.call('ZPOPMIN', KEYS[1])",
  "local list = {} for i = 1, 7000 do list[i] = i end return redis.call('ZREM', KEYS[1], unpack(list))",
  "local list = {} for i = 1, 8000 do list[i] = i end return (pcall(unpack, list)) and 'fits' or 'too many'",
  // Samples of errors: a command fails, and the script may catch the error; the script itself fails; the script returns
  // an error.
  "redis.call('SET', KEYS[1], 'v') return redis.call('HGET', KEYS[1], 'f')",
  "redis.call('SET', KEYS[1], 'v') local reply = redis.pcall('HGET', KEYS[1], 'f') return { type(reply), reply.err }",
  "redis.call('SET', KEYS[1], 'v') return redis.pcall('HGET', KEYS[1], 'f')",
  "redis.call('SET', KEYS[1], 'v') local ok, why = pcall(redis.call, 'HGET', KEYS[1], 'f') return { tostring(ok), why }",
  "redis.call('SET', KEYS[1], 'v') local reply = redis.pcall('HGET', KEYS[1], 'f') return error(reply.err)",
  "return redis.call('HGET', KEYS[1])",
  'return redis.call()',
  "return redis.call('GET', nil)",
  "return redis.call('GET', {})",
  "return string.match(redis.pcall('GET', true).err, '^%S+')",
  "error('on purpose')",
  "error({ err = 'MINE on purpose' })",
  'return nil + 1',
  'return undefined',
  'undefined = 1',
  "return { err = 'MINE returned' }",
  "return redis.error_reply('MINE returned')",
  "return redis.error_reply('-MINE returned')",
  "return redis.error_reply('word')",
  "return redis.status_reply('FINE')",
  'return (',
]

/** Returns the reply, or the code of the error. The rest of an error's text depends on the server's version. */
async function outcome(run: () => unknown): Promise<unknown> {
  try {
    return await run()
  } catch (error) {
    return `error: ${(error as Error).message.split(' ', 1)}`
  }
}

test('scripts return the replies of a real server', async () => {
  const redis = plainRedis()
  for (const lua of samples) {
    const key = freshKey('lua')
    const here = await outcome(() => memory.eval(lua, [key], ['Grüße']))
    expect(here, lua).toEqual(await outcome(() => redis.eval(lua, 1, key, 'Grüße')))
    await redis.del(key)
  }
})

// The results are not compared with those of a server, because Redis 7.2 and later write fractions with fewer digits.
test('a number becomes an argument of a command with up to 17 digits', () => {
  const numbers = [
    '0.1',
    '1/3',
    '1e17',
    '1e16 + 2',
    '123456789.125',
    '1e-7',
    '-2.5e-10',
    '1e300',
    '2^63',
    '-1e20',
    '1/0',
    '-0',
  ]
  const lua = `redis.call('SET', KEYS[1], x) return { redis.call('GET', KEYS[1]), string.format('%.17g', x) }`
  for (const number of numbers) {
    const [given, expected] = memory.eval(`local x = ${number} ${lua}`, ['n'], []) as [string, string]
    expect(given, number).toBe(expected)
  }
})

// `%d` formats 32-bit numbers in WebAssembly, and 64-bit numbers in the server.
test('a format for integers is refused', () => {
  for (const format of ['%d', '%5i %s', '%.0f %x']) {
    expect(() => memory.eval(`return string.format('${format}', 1750000000000001, 1)`, [], [])).toThrow('write %.0f')
  }
})

test('a failed script does not affect the next one', () => {
  for (let i = 0; i < 300; i++) {
    expect(() =>
      memory.eval("local deep = {} for i = 1, 50 do deep[i] = i end redis.call('HGET', unpack(deep))", [], []),
    ).toThrow()
    expect(() => memory.eval("redis.pcall('NONSENSE')", [], [])).toThrow('has no command')
  }
  expect(memory.eval('return { KEYS[1], ARGV[1] }', ['k'], ['a'])).toEqual(['k', 'a'])
})

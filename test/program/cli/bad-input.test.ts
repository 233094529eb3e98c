/**
 * Tests invalid input. The program prints one line, which gives the reason, says what to do, and contains no secret.
 * The program ends with the right exit code.
 */
import { readFileSync } from 'node:fs'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { describe, expect, onTestFinished, test } from 'vitest'
import { client, freshKey, keysWith, ownServer, plainRedis, redisUrl } from '../../kit/redis.ts'
import { emptyFolder } from '../../kit/temp.ts'
import { eventually } from '../../kit/time.ts'
import { tls } from '../../kit/topologies/tls.ts'
import { baton, type Ended, STARTUP, start } from './baton.ts'

const SECRET = 's3cret/with?all#of@them%'
const encoded = encodeURIComponent(SECRET)
/** Texts that the program must not show: the secret, and parts of the secret that remain if a URL is parsed wrongly. */
const secrets = [SECRET, encoded, 's3cret']

/** Expects nothing on stdout, one line on stderr, and no secret. */
function expectRefusal({ code, output, errors }: Ended, expected: number, message: string | RegExp): void {
  expect({ code, output }).toEqual({ code: expected, output: '' })
  expect(errors).toMatch(message)
  expect(errors).toMatch(/^baton: [^\n]*\n$/)
  for (const secret of secrets) expect(errors).not.toContain(secret)
}

const ways = { run: ['run', 'k', '--', 'true'], inspect: ['inspect', 'k'], list: ['list'] }

async function refuses(url: string, message: RegExp): Promise<void> {
  expectRefusal(await baton('list', '--url', url), 69, message)
}

describe('unknown words: 64, and the nearest known one', () => {
  test.each([
    [['runn'], `unknown command 'runn' (Did you mean run?)`],
    [['--fiar'], `unknown option '--fiar'; baton --help lists the commands and options`],
    [['run', 'k', '--fiar', '--', 'true'], `unknown option '--fiar' (Did you mean --fair?)`],
    [['release', 'k'], `required option '--force' not specified`],
    [['inspect', 'a', 'b'], 'too many arguments'],
    [['inspect', 'a', '--kind', 'lock'], 'Allowed choices are mutex, readWrite, semaphore.'],
    [['release', '--force', 'a', '--holder', 'x'], 'It must be the id of a holder, as baton inspect shows it.'],
    [['--url', 'redis://127.0.0.1:1', 'lst'], `unknown command 'lst' (Did you mean list?)`],
  ])('%j', async (args, message) => {
    const ended = await baton(...args)
    expect(ended.errors).toContain(message)
    expectRefusal(ended, 64, '')
  })
})

describe('an invalid command line of run', () => {
  test.each([
    [['run', 'k'], `missing required argument 'command'`],
    [['run', 'k', 'sleep', '4'], 'put `--` before the command: `baton run k -- sleep 4`'],
    [
      ['run', '--fair', 'k', 'ls', '-l'],
      `unknown option '-l'; put \`--\` before the command: \`baton run --fair k -- ls -l\``,
    ],
    [['run', 'k', '--lase', '1s', 'ls', '-l'], `unknown option '--lase' (Did you mean --lease?)`],
    [['run', '--url', 'redis://:s3cret@h', 'k', 'ls'], '`baton run --url redis://h k -- ls`'],
    [['--url=s3cret@h', 'run', 'k', 'ls'], '`baton --url=… run k -- ls`'],
    [['run', '--', 'sleep', '4'], 'the key is missing; usage: baton run <key> -- <command> [args...]'],
    [['run', 'k', '--', ''], 'the command after -- is empty'],
  ])('%j', async (args, message) => {
    const ended = await baton(...args)
    expect(ended.errors).toContain(message)
    expectRefusal(ended, 64, '')
  })
})

describe('options of run that do not determine the lock', () => {
  test.each([
    [['--permits', '0'], 'It must be a whole number, at least 1.'],
    [['--permits', '2', '--take', '3'], '--take 3 is more than --permits 2'],
    [['--take', '1'], '--take needs --permits'],
    [['--permits', '2', '--and', 'b'], `'--permits <n>' cannot be used with option '--and <key>'`],
    [['--read', '--write'], `'--read' cannot be used with option '--write'`],
    [['--read', '--permits', '2'], `cannot be used with option '--read'`],
    [['--and', ''], 'key is ""'],
  ])('%j', async (options, message) => {
    const key = freshKey()
    const ended = await baton('run', key, ...options, '--', 'true')
    expect(ended.errors).toContain(message)
    expectRefusal(ended, 64, '')
    expect(await keysWith(plainRedis(), key)).toEqual([])
  })
})

describe('an invalid time', () => {
  test.each([
    ['--timeout', '30 parsecs', 'such as 500ms, 30s or 2m'],
    ['--timeout', '-5s', 'such as 500ms, 30s or 2m'],
    ['--lease', 'soon', 'such as 500ms, 30s or 2m'],
    ['--lease', '0s', 'lease is 0'],
    // A timer of Node with a delay of 25 days or more fires at once. With such a --grace, SIGKILL would be sent at
    // once.
    ['--grace', '30d', 'at most 24 days (24d)'],
  ])('%s %j', async (option, value, message) => {
    const ended = await baton('run', 'k', option, value, '--', 'true')
    expect(ended.errors).toContain(message)
    expectRefusal(ended, 64, '')
  })
})

describe('an invalid address: 64 (address.test.ts tests which are valid)', () => {
  const ways = [['run', 'k', '--', 'true'], ['inspect', 'k'], ['list'], ['top'], ['ui'], ['demo'], ['bench']]
  test.each([...ways, ['release', '--force', 'k']])('baton %s', async (name, ...rest) => {
    const none = /^baton: --url is not an address of Redis; expected redis:/
    for (const scheme of ['redis', 'redis+cluster', 'redis+sentinel']) {
      const url = `${scheme}://:${SECRET}@127.0.0.1:1`
      expectRefusal(await baton(name!, '--url', url, ...rest), 64, none)
    }
  })

  test.each([['list'], ['demo'], ['bench']])('baton %s, in the environment', async name => {
    const ended = await start([name], { REDIS_URL: `redis://:${SECRET}@127.0.0.1:1` }).ended
    expectRefusal(ended, 64, /^baton: \$REDIS_URL is not an address of Redis; expected redis:/)
  })
})

describe('a Redis that cannot be used: 69, and why', () => {
  test('nothing listens', async () => {
    const url = `redis://:${encoded}@127.0.0.1:1`
    await refuses(url, /Redis at 127\.0\.0\.1:1 cannot be used: .*ECONNREFUSED/)
    for (const [name, ...rest] of [ways.run, ['bench'], ['demo']]) {
      const { code, output, errors } = await baton(name!, '--url', url, ...rest)
      // bench and demo first print which Redis they use.
      expect(output).toMatch(/^(Redis: .*127\.0\.0\.1:1\b.*\n)?$/)
      expectRefusal({ code, output: '', errors }, 69, /ECONNREFUSED|closed/)
    }
  })

  test('nothing listens at any address of the host', () =>
    refuses(`redis://:${encoded}@localhost:1`, /Redis at localhost:1 cannot be used: .*ECONNREFUSED/))

  test('wrong password, wrong user, no password, no such database', async () => {
    const password = 'the right one'
    const args = ['--requirepass', password, '--user', 'somebody', 'on', `>${password}`, '~*', '&*', '+@all']
    const { port } = await ownServer(...args)
    const right = encodeURIComponent(password)
    await refuses(`redis://:${encoded}@127.0.0.1:${port}`, /WRONGPASS/)
    await refuses(`redis://somebody:${encoded}@127.0.0.1:${port}`, /WRONGPASS/)
    await refuses(`redis://127.0.0.1:${port}`, /NOAUTH .*user:password@ before the host/)
    await refuses(`redis://:${right}@127.0.0.1:${port}/99`, /DB index is out of range/)
    const { code, output } = await baton('list', '--url', `redis://somebody:${right}@127.0.0.1:${port}/3`)
    expect({ code, output }).toEqual({ code: 0, output: 'no lock is held\n' })
  })

  test('TLS to a server without it, no TLS to a server with it, and an untrusted certificate', async () => {
    const plain = new URL(redisUrl()).port
    await refuses(`rediss://:${encoded}@127.0.0.1:${plain}`, /the TLS handshake failed .*begins with redis:\/\//)
    const servers = await tls.start()
    onTestFinished(() => servers.stop())
    const { port } = servers.client.kind === 'server' ? servers.client.options : {}
    await refuses(
      `redis://:${encoded}@127.0.0.1:${port}`,
      /if it expects TLS, use an address that begins with rediss:\/\//,
    )
    await refuses(`rediss://:${encoded}@127.0.0.1:${port}`, /certificate.*NODE_EXTRA_CA_CERTS/)
  })

  test('a node of a cluster', async () => {
    const { url } = await ownServer('--cluster-enabled', 'yes')
    await refuses(url, /the server is a node of a cluster; use an address that begins with redis\+cluster:/)
    await refuses(url.replace('redis:', 'redis+cluster:'), /the nodes of this cluster have no slots yet/)
  })

  // This test takes 15 s, because the address may lead to the master soon, and a call waits so long for that.
  test('a replica: locks can be inspected, but not taken', { timeout: 60_000 }, async () => {
    const { url } = await ownServer()
    await plainRedis(url).replicaof('127.0.0.1', 1)
    expectRefusal(await baton('run', 'k', '--url', url, '--', 'true'), 69, /READONLY/)
    expect((await baton('list', '--url', url)).code).toBe(0)
  })

  test('a user without the rights', async () => {
    const { port } = await ownServer('--user', 'guest', 'on', `>${SECRET}`, 'allkeys', 'allchannels', '+time')
    await refuses(`redis://guest:${encoded}@127.0.0.1:${port}`, /NOPERM|lacks/)
  })

  // This test takes 15 s, because a call waits so long for Redis to come back.
  test('a server that loads its data for too long', { timeout: 60_000 }, async () => {
    const slowly = ['--key-load-delay', '50000', '--loading-process-events-interval-bytes', '1024']
    const { url } = await ownServer('--enable-debug-command', 'yes', '--rdbcompression', 'no', ...slowly)
    const redis = new Redis(url, { enableReadyCheck: false })
    onTestFinished(() => redis.disconnect())
    await redis.mset(Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`filler ${i}`, 'x'.repeat(1_000)])))
    const looking = redis.duplicate()
    onTestFinished(() => looking.disconnect())
    redis.call('DEBUG', 'RELOAD').catch(() => {})
    await eventually(async () => /loading:1/.test(await looking.info('persistence')), 15_000)
    expectRefusal(await baton('run', 'k', '--url', url, '--', 'true'), 69, /LOADING/)
  })
})

test('a user with only the rights in docs/operations.md can use it', async () => {
  const { aclRule } = await import('../../kit/rights.ts')
  const { mutex } = await import('../../../src/kinds/mutex/mutex.ts')
  const { port } = await ownServer('--user', 'few', 'on', `>${SECRET}`, ...aclRule([mutex]))
  const url = `redis://few:${encoded}@127.0.0.1:${port}`
  for (const [name, ...rest] of Object.values(ways)) {
    const { code, errors } = await baton(name!, '--url', url, ...rest)
    expect({ code, errors }).toEqual({ code: 0, errors: '' })
  }
})

test('a password in --url is not visible in the list of processes, once it has started', async () => {
  const running = start([
    ...['run', freshKey(), '--url', redisUrl().replace('redis://', `redis://:${encoded}@`), '--', process.execPath],
    ...['-e', 'console.log(1); setInterval(() => {}, 1000)'],
  ])
  await eventually(() => running.output() !== '', STARTUP)
  const shown = readFileSync(`/proc/${running.child.pid}/cmdline`, 'utf8')
  expect(shown).toMatch(/^baton run .*--url redis:\/\/127/)
  for (const secret of secrets) expect(shown).not.toContain(secret)
  // SIGTERM ends `baton run` and its command. SIGKILL would leave the command running.
  running.child.kill('SIGTERM')
  await running.ended
})

describe('a command that cannot be started: the lock is free afterwards', () => {
  test.each([
    [['nosuchcommand'], 127, 'nosuchcommand: command not found'],
    [['/'], 126, '/: '],
    [['/etc/passwd/x'], 126, '/etc/passwd/x: '],
  ])('%j', async (command, expected, message) => {
    const key = freshKey()
    const ended = await baton('run', key, '--', ...command)
    expect(ended.errors).toContain(message)
    expectRefusal(ended, expected, '')
    expect(await client().isLocked(key)).toBe(false)
  })

  test('a script whose first line names a missing program', async () => {
    const file = join(await emptyFolder(), 'script')
    await writeFile(file, '#!/no/such/interpreter\n')
    await chmod(file, 0o755)
    const ended = await baton('run', freshKey(), '--', file)
    expectRefusal(ended, 127, /the interpreter that the first line of this file names \(#!\) does not exist/)
  })
})

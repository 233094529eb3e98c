/** Tests every command of `baton` with a cluster or sentinels, with passwords, with and without TLS. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished } from 'vitest'
import { freshKey, ownServer, redisUrl, test } from '../../kit/redis.ts'
import { emptyFolder } from '../../kit/temp.ts'
import { eventually } from '../../kit/time.ts'
import { type Guarded, guardedCluster, guardedSentinel, masterName, passwords } from '../../kit/topologies/guarded.ts'
import { type Ended, STARTUP, start } from './baton.ts'

const encoded = { data: encodeURIComponent(passwords.data), sentinels: encodeURIComponent(passwords.sentinels) }
const stays = [process.execPath, '-e', `console.log('runs'); setInterval(() => {}, 1000)`]

interface Case {
  readonly kind: 'cluster' | 'sentinel'
  readonly tls: boolean
}

const cases: readonly Case[] = [
  { kind: 'cluster', tls: true },
  { kind: 'sentinel', tls: false },
]

describe.each(cases)('$kind, by TLS: $tls', ({ kind, tls }) => {
  let servers: Guarded
  /** The address of Redis as the program shows it. */
  let place: string
  let url: string
  let env: NodeJS.ProcessEnv

  beforeAll(async () => {
    servers = await (kind === 'cluster' ? guardedCluster({ tls }) : guardedSentinel({ tls }))
    const hosts = servers.hosts.map(({ host, port }) => `${host}:${port}`).join(',')
    place = `${tls ? 'rediss' : 'redis'}+${kind}://${hosts}${kind === 'cluster' ? '' : `/${masterName}`}`
    const forSentinels = kind === 'cluster' ? '' : `?sentinel_password=${encoded.sentinels}`
    url = `${place.replace('//', `//default:${encoded.data}@`)}${forSentinels}`
    env = { REDIS_URL: url, ...(tls && { NODE_EXTRA_CA_CERTS: servers.ca.file }) }
  })

  afterAll(() => servers?.stop())

  const ended = async (...args: string[]) => noSecret(await start(args, env).ended)
  const by = async (other: string, ...args: string[]) =>
    noSecret(await start([...args, '--url', other], { ...env, REDIS_URL: '' }).ended)
  /** Starts another `baton run`, which holds the lock. */
  const held = async (key: string) => {
    const running = start(['run', key, '--label', 'the holder', '--', ...stays], env)
    await eventually(() => running.output() !== '', STARTUP)
    onTestFinished(() => void running.child.kill('SIGTERM'))
    return running
  }

  test('run takes turns, and passes its command the token', async () => {
    const keys = [freshKey('{a}'), freshKey('{b}'), freshKey('{c}')]
    const token = ['sh', '-c', 'echo $BATON_FENCING_TOKEN']
    for (const key of keys) {
      const first = await ended('run', key, '--', ...token)
      const second = await ended('run', key, '--fair', '--', ...token)
      expect([first.code, second.code, first.errors, second.errors]).toEqual([0, 0, '', ''])
      expect(Number(second.output)).toBeGreaterThan(Number(first.output))
    }
  })

  test('inspect, list, top and release see what run holds, and run learns of the release', async ({ key }) => {
    const running = await held(key)
    const waiting = start(['run', key, '--fair', '--label', 'the next', '--', 'echo', 'mine'], env)
    await eventually(
      async () => JSON.parse((await ended('inspect', key, '--json')).output).waiters.length === 1,
      STARTUP,
    )
    const shown = await ended('inspect', key)
    expect(shown.output).toMatch(new RegExp(`^${key} is held by the holder\\n`))
    expect(shown.output).toContain('the next')
    expect((await ended('list', key)).output).toMatch(new RegExp(`\\n${key} +the holder +\\d`))
    expect((await ended('top', '--once', key)).output).toContain('the holder')
    const [{ heldFor }] = JSON.parse((await ended('list', key, '--json')).output)
    expect(heldFor).toBeGreaterThan(0)
    expect(heldFor).toBeLessThan(60_000)
    // Here the servers are named by --url. All other calls of this test name them in the environment.
    expect(await by(url, 'release', '--force', '--yes', key)).toMatchObject({ code: 0, output: `${key} is released\n` })
    expect(await running.ended).toMatchObject({ code: 75 })
    expect(await waiting.ended).toMatchObject({ code: 0, output: 'mine\n' })
  })

  test('list finds the locks of all servers', async () => {
    const name = freshKey()
    const all = ['{a}', '{b}', '{c}', '{d}'].map(tag => `${name}:${tag}`)
    const running = await Promise.all(all.map(held))
    const states = JSON.parse((await ended('list', `${name}:*`, '--json')).output) as { key: string }[]
    expect(states.map(({ key }) => key)).toEqual(all)
    for (const { child } of running) child.kill('SIGTERM')
    for (const one of running) expect((await one.ended).code).toBe(143)
  })

  test.each(['bench', 'demo'])('%s reports at once that it works with one server: 64', async name => {
    const byUrl = await by(url, name)
    expect(byUrl).toMatchObject({ code: 64, output: '' })
    const what = kind === 'cluster' ? 'a cluster' : 'sentinels'
    expect(byUrl.errors).toMatch(
      new RegExp(`^baton: baton ${name} works with one server, but --url names ${what}; [^\n]*\n$`),
    )
    expect((await ended(name)).errors).toMatch(/\$REDIS_URL names .*unset REDIS_URL/)
  })

  test('a wrong password, protocol or kind of server is reported: 69', async () => {
    const refused = async (other: string, why: RegExp) => {
      const { code, output, errors } = await by(other, 'list')
      expect({ code, output }).toEqual({ code: 69, output: '' })
      expect(errors).toMatch(/^baton: Redis at [^\n]* cannot be used: [^\n]*\n$/)
      expect(errors).toMatch(why)
    }
    await refused(url.replace(encoded.data, 'another'), /WRONGPASS/)
    await refused(url.replace(`default:${encoded.data}@`, ''), /NOAUTH .*user:password@ before the host/)
    if (kind === 'sentinel') {
      await refused(url.replace(/\?.*/, ''), /a sentinel refused the connection: NOAUTH .*\?sentinel_username=/)
      await refused(
        url.replace(encoded.sentinels, 'another'),
        /a sentinel refused the connection: WRONGPASS .*\?sentinel_username=/,
      )
      await refused(url.replace(masterName, 'nobody'), /the sentinels know no master named nobody/)
      const master = `redis+sentinel://127.0.0.1:${servers.servers[0]!.port}/m?sentinel_password=${encoded.data}`
      await refused(master, /the server is not a sentinel/)
    } else {
      const { port } = servers.servers[0]!
      await refused(
        `redis://:${encoded.data}@127.0.0.1:${port}`,
        /is a node of a cluster; use an address that begins with redis\+cluster:/,
      )
      await refused(redisUrl().replace('redis:', 'redis+cluster:'), /the server is not a node of a cluster/)
    }
    const swapped = tls ? url.replace('rediss', 'redis') : url.replace('redis', 'rediss')
    await refused(
      swapped,
      tls
        ? /if it expects TLS, use an address that begins with rediss\+/
        : /if the server does not use TLS, use an address that begins with redis\+/,
    )
  })

  test('one host that answers is enough', async () => {
    const [first, ...rest] = servers.hosts.map(({ host, port }) => `${host}:${port}`)
    const around = url.replace([first, ...rest].join(','), `127.0.0.1:1,no-such-host.invalid,${first}`)
    expect(await by(around, 'list')).toMatchObject({ code: 0, errors: '' })
  })
})

test('a Unix socket: run, inspect, and the reason if nobody listens on it', async ({ key }) => {
  const path = join(await emptyFolder(), 'the redis.sock')
  await ownServer('--unixsocket', path, '--requirepass', passwords.data)
  const url = `unix://:${encoded.data}@${encodeURI(path)}?db=2`
  const ran = noSecret(await start(['run', key, '--', 'echo', 'mine'], { REDIS_URL: url }).ended)
  expect(ran).toMatchObject({ code: 0, output: 'mine\n', errors: '' })
  const free = noSecret(await start(['inspect', key, '--url', url]).ended)
  expect(free).toMatchObject({ code: 0, output: expect.stringContaining('is free'), errors: '' })
  const away = noSecret(await start(['list'], { REDIS_URL: url.replace('the%20', '') }).ended)
  expect(away).toMatchObject({
    code: 69,
    errors: expect.stringMatching(/^baton: Redis at \/.*\/redis\.sock cannot .* ENOENT/),
  })
  const bench = noSecret(await start(['bench'], { REDIS_URL: url }).ended)
  expect(bench).toMatchObject({ code: 64, errors: expect.stringContaining('$REDIS_URL names a Unix socket') })
})

function noSecrets(text: string): void {
  for (const secret of [...Object.values(passwords), ...Object.values(encoded), 's3cret'])
    expect(text).not.toContain(secret)
}

function noSecret(ended: Ended): Ended {
  noSecrets(ended.output + ended.errors)
  return ended
}

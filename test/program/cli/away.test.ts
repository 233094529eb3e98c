/**
 * Tests how, and how soon, each command ends if Redis is unreachable or becomes unreachable. The measured times do not
 * include the start of the program.
 */
import { describe, expect, test } from 'vitest'
import { client, freshKey, ownServer } from '../../kit/redis.ts'
import { eventually, sleep } from '../../kit/time.ts'
import { openSite } from '../ui/site.ts'
import { type Running, STARTUP, silent, start } from './baton.ts'

/** How long, in ms, a program on a slow machine may need to notice that Redis is away, to report it and to end. */
const SLACK = 4_000
/**
 * How long, in ms, a program waits for Redis. CONNECT: for a connection at its start. LOOK: for a reading of locks.
 * OUTAGE: for Redis to come back, in `baton run`.
 */
const [CONNECT, LOOK, OUTAGE] = [5_000, 5_000, 15_000]

/** The words that follow each command's name. The address is inserted before them. */
const commands = {
  run: ['k', '--', 'true'],
  inspect: ['k'],
  list: [],
  top: ['--once'],
  ui: [],
  release: ['--force', '--yes', 'k'],
  bench: ['--rounds', '1', '--seconds', '0.1'],
  demo: [],
} as const
type Name = keyof typeof commands
const names = Object.keys(commands) as Name[]
const looks = ['inspect', 'list', 'top', 'release'] as const

function at(url: string, name: Name): Running {
  return start([name, '--url', url, ...commands[name]])
}

/** Waits for the program's end. Returns the ms since `begun`. */
async function endOf(running: Running, begun: () => number | undefined) {
  const { code, output, errors } = await running.ended
  const from = begun()
  return { code, output, errors, took: from === undefined ? Number.NaN : performance.now() - from }
}

describe('at the start: 69, one line, and soon', () => {
  test('a server accepts connections but never answers', { timeout: 60_000 }, async () => {
    const ends = names.map(async name => {
      const server = await silent()
      const ended = await endOf(at(`redis://127.0.0.1:${server.port}`, name), () => server.since)
      return { name, ...ended }
    })
    for (const { name, code, errors, took } of await Promise.all(ends)) {
      expect({ name, code }).toEqual({ name, code: 69 })
      expect(errors).toMatch(/^baton: [^\n]*no answer within 5 s\n$/)
      expect(took, name).toBeLessThan(CONNECT + SLACK)
    }
  })

  test.each([
    ['nothing listens', '127.0.0.1:1', /ECONNREFUSED/],
    ['the host does not exist', 'no-such-host.invalid:1', /ENOTFOUND|EAI_AGAIN/],
  ])('%s', { timeout: 60_000 }, async (_, host, why) => {
    const addresses = [`redis://${host}`, `redis+cluster://${host},${host}`, `redis+sentinel://${host},${host}/m`]
    for (const [i, name] of names.entries()) {
      const url = addresses[name === 'bench' || name === 'demo' ? 0 : i % 3]!
      const begun = performance.now()
      const { code, errors } = await at(url, name).ended
      expect({ name, code }).toEqual({ name, code: 69 })
      expect(errors).toMatch(why)
      expect(errors).toMatch(/^baton: [^\n]*\n$/)
      expect(performance.now() - begun, name).toBeLessThan(CONNECT + SLACK)
    }
  })

  test.each([
    ['a cluster', (port: number) => `redis+cluster://127.0.0.1:${port},127.0.0.1:1`],
    ['sentinels', (port: number) => `redis+sentinel://127.0.0.1:${port},127.0.0.1:1/m`],
  ])('%s with one silent host and one that is not there', { timeout: 40_000 }, async (_, urlOf) => {
    const server = await silent()
    const ended = await endOf(at(urlOf(server.port), 'list'), () => server.since)
    expect(ended.code).toBe(69)
    expect(ended.errors).toMatch(
      /127\.0\.0\.1:\d+: the server gave no answer within 3\.5 s; 127\.0\.0\.1:1: .*ECONNREFUSED/,
    )
    expect(ended.took).toBeLessThan(CONNECT + SLACK)
  })
})

test('the first connection is answered, but nothing else is: 69', async () => {
  const ends = [...looks, 'run' as const].map(async name => {
    const server = await silent(1)
    const ended = await endOf(at(`redis://127.0.0.1:${server.port}`, name), () => server.since)
    return { name, ...ended }
  })
  for (const { name, code, output, errors, took } of await Promise.all(ends)) {
    expect({ name, code, output }).toEqual({ name, code: 69, output: '' })
    expect(errors).toMatch(/^baton: [^\n]*\n$/)
    expect(took, name).toBeLessThan((name === 'run' ? OUTAGE : LOOK) + SLACK)
  }
})

/** How long, in ms, a program may need to notice that Redis has died. */
const A_MOMENT = 500
const stays = [process.execPath, '-e', `console.log('runs'); setInterval(() => {}, 1000)`]

test.each([
  ['dies', 'SIGKILL'],
  ['hangs', 'SIGSTOP'],
] as const)('Redis %s while a command runs', { timeout: 90_000 }, async (_, signal) => {
  const server = await ownServer()
  const locks = client({}, server.url)
  const key = freshKey()
  await locks.lock(key)
  const run = (...args: string[]) => start(['run', '--url', server.url, ...args])
  const waits = (...options: string[]) => run('--fair', ...options, key, '--', 'true')
  const holds = (...options: string[]) => run(...options, freshKey(), '--', ...stays)
  const waiting = { patient: waits(), timed: waits('--timeout', '60s'), int: waits(), term: waits(), hup: waits() }
  const holding = { told: holds(), lost: holds('--lease', '4s') }
  const { running: ui } = await openSite([], { REDIS_URL: server.url })
  await eventually(async () => (await locks.inspect(key)).waiters.length === 5, STARTUP)
  await eventually(() => Object.values(holding).every(one => one.output() !== ''), STARTUP)

  const away = performance.now()
  process.kill(server.pid!, signal)
  await sleep(A_MOMENT)
  const signalled = performance.now()
  waiting.int.child.kill('SIGINT')
  waiting.term.child.kill('SIGTERM')
  waiting.hup.child.kill('SIGHUP')
  holding.told.child.kill('SIGINT')
  ui.child.kill('SIGINT')
  const oneLine = expect.stringMatching(/^baton: [^\n]*\n$/)
  const rows = [
    ['ui, Ctrl-C', ui, { code: 0, errors: '' }, signalled, 0],
    ['run waits, SIGINT', waiting.int, { code: 130, output: '', errors: '' }, signalled, 0],
    ['run waits, SIGTERM', waiting.term, { code: 143, output: '', errors: '' }, signalled, 0],
    ['run waits, SIGHUP', waiting.hup, { code: 129, output: '', errors: '' }, signalled, 0],
    // The command receives the signal and ends. Then `baton run` tries for one second to release the lock.
    ['run holds, SIGINT', holding.told, { code: 130, output: 'runs\n', errors: oneLine }, signalled, 1_000],
    ['run holds, until its lease ends', holding.lost, { code: 75, output: 'runs\n' }, away, 4_000],
    // If Redis hangs, its connections stay open. A program that waits notices this only when its next heartbeat is not
    // answered.
    ['run waits', waiting.patient, { code: 69, output: '', errors: oneLine }, away, OUTAGE + 5_000],
    ['run waits with a --timeout', waiting.timed, { code: 69, output: '', errors: oneLine }, away, OUTAGE + 5_000],
  ] as const
  const ends = rows.map(async ([what, running, expected, begun, limit]) => {
    const ended = await endOf(running, () => begun)
    return { what, ended, expected, limit: limit + SLACK }
  })
  for (const { what, ended, expected, limit } of await Promise.all(ends)) {
    expect({ what, ...ended }).toMatchObject({ what, ...expected })
    expect(ended.took, what).toBeLessThan(limit)
  }
})

/**
 * Tests `baton` with a quorum: `--url` is given three, five or seven times. All servers persist each write. So they
 * cannot have lost a vote, and `baton` counts their votes at once, although they have just started.
 */
import { afterAll, beforeAll, describe, expect, onTestFinished } from 'vitest'
import { findServerSource, type RunningServer } from '../../../local-redis/index.ts'
import { freshKey, test } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'
import { begun, type Ended, end, type Running, STARTUP, silent, start, stays } from './baton.ts'

const password = 's3cret/word'
const encoded = encodeURIComponent(password)
/** How long the first connection to a server may take, in ms. */
const CONNECT = 5_000

const token = ['sh', '-c', 'echo "$BATON_KEY $BATON_FENCING_TOKEN"']

async function servers(count: number): Promise<RunningServer[]> {
  const source = await findServerSource()
  const args = ['--appendonly', 'yes', '--appendfsync', 'always', '--requirepass', password]
  return Promise.all(Array.from({ length: count }, () => source.start({ args })))
}

function urlOf({ port }: { readonly port: number }): string {
  return `redis://default:${encoded}@127.0.0.1:${port}`
}

function urls(of: readonly { readonly port: number }[]): string[] {
  return of.flatMap(server => ['--url', urlOf(server)])
}

/** Starts `baton` with an unreachable $REDIS_URL, so that only the addresses of `--url` work. */
function by(args: readonly string[]): Running {
  return start(args, { REDIS_URL: 'redis://127.0.0.1:1' })
}

async function ended(...args: readonly string[]): Promise<Ended> {
  const end = await by(args).ended
  for (const secret of [password, encoded, 's3cret']) expect(end.output + end.errors).not.toContain(secret)
  return end
}

describe('three servers', () => {
  let three: RunningServer[]
  let quorum: string[]

  beforeAll(async () => {
    three = await servers(3)
    quorum = urls(three)
  })

  afterAll(() => Promise.all((three ?? []).map(server => server.stop())))

  /** Starts another `baton run`, which holds the lock. */
  const held = (key: string) => begun(by(['run', key, ...quorum, '--label', 'the holder', '--', ...stays]))

  test('run takes turns, passes its command the key and a larger token, and ends as its command does', async () => {
    const key = freshKey()
    const first = await ended('run', key, ...quorum, '--', ...token)
    const second = await ended('run', key, ...quorum, '--fair', '--', ...token)
    expect([first, second]).toMatchObject(Array(2).fill({ code: 0, errors: '' }))
    const tokens = [first, second].map(({ output }) => {
      expect(output).toMatch(new RegExp(`^${key} \\d+\\n$`))
      return Number(output.split(' ')[1])
    })
    expect(tokens[1]).toBeGreaterThan(tokens[0]!)
    expect((await ended('run', key, ...quorum, '--', 'sh', '-c', 'exit 7')).code).toBe(7)
  })

  test('I1: one at a time; a run that does not wait names the holder, and a waiting one is granted by the release', async () => {
    const key = freshKey()
    const holder = await held(key)
    const none = await ended('run', key, ...quorum, '--timeout', '0', '--', 'true')
    expect(none).toMatchObject({ code: 124, output: '' })
    expect(none.errors).toMatch(/^baton: .* was not granted .*held by the holder.*\n$/)
    const next = by(['run', key, ...quorum, '--fair', '--label', 'the next', '--', ...token])
    await eventually(async () => {
      const { output } = await ended('inspect', key, ...quorum, '--json')
      return JSON.parse(output).waiters.length === 1
    }, STARTUP)
    expect(next.output()).toBe('')
    await end(holder)
    expect(await next.ended).toMatchObject({ code: 0, errors: '' })
  })

  test('inspect, list, top and release report what a majority reports, and run learns of the release', async () => {
    const key = freshKey()
    const running = await held(key)
    expect((await ended('inspect', key, ...quorum)).output).toMatch(new RegExp(`^${key} is held by the holder\\n`))
    expect((await ended('list', key, ...quorum)).output).toMatch(new RegExp(`\\n${key} +the holder +\\d`))
    expect((await ended('top', '--once', key, ...quorum)).output).toContain('the holder')
    expect((await ended('__complete', '--', 'inspect', ...quorum, key)).output).toContain(`${key}\theld by the holder`)
    expect(await ended('release', '--force', '--yes', key, ...quorum)).toMatchObject({
      code: 0,
      output: `${key} is released\n`,
    })
    expect(await running.ended).toMatchObject({ code: 75 })
    expect((await ended('list', key, ...quorum)).output).toBe('no lock is held\n')
  })

  test('a server that accepts connections and never answers is not waited for', async () => {
    const quiet = await silent()
    const two = three.slice(0, 2)
    const running = await begun(by(['run', freshKey(), ...urls([quiet, ...two]), '--', ...stays]))
    expect(performance.now() - quiet.since!).toBeLessThan(CONNECT)
    await end(running)
  })
})

test('five servers: losing two costs a line on stderr, losing a third is fatal', async ({ key }) => {
  const five = await servers(5)
  onTestFinished(() => Promise.all(five.map(server => server.stop())).then(() => {}))
  const run = ['run', key, ...urls(five), '--', ...token]
  const before = await ended(...run)
  expect(before).toMatchObject({ code: 0, errors: '' })
  const [a, b, c] = five as [RunningServer, RunningServer, RunningServer, ...RunningServer[]]
  const holder = await begun(by(['run', key, ...urls(five), '--lease', '2s', '--', ...stays]))
  await Promise.all([a.kill(), b.kill()])
  // The lease is 2 s. After 4 s another caller is still refused, because the remaining three servers have renewed the
  // hold.
  const refused = await ended('run', key, ...urls(five), '--timeout', '4s', '--', 'true')
  expect(refused.code).toBe(124)
  await end(holder)
  const after = await ended(...run)
  expect(after.code).toBe(0)
  expect(Number(after.output.split(' ')[1])).toBeGreaterThan(Number(before.output.split(' ')[1]))
  const gone = ({ port }: RunningServer) => new RegExp(`baton: Redis at 127\\.0\\.0\\.1:${port} cannot be used: `)
  for (const server of [a, b]) expect(after.errors).toMatch(gone(server))

  await c.kill()
  const none = await ended(...run)
  expect(none).toMatchObject({ code: 69, output: '' })
  expect(none.errors).toMatch(/^baton: fewer than 3 of the 5 servers of the quorum can be used: [^\n]*\n$/)
  for (const { port } of [a, b, c]) expect(none.errors).toContain(`Redis at 127.0.0.1:${port} cannot be used`)
})

describe('no valid quorum: 64, before any connection', () => {
  const nowhere = (count: number) => urls(Array.from({ length: count }, (_, i) => ({ port: i + 1 })))

  test.each([2, 9])('%i servers', async count => {
    await refuses(nowhere(count), new RegExp(`^baton: --url is given ${count} times; .* 3, 5 or 7 times`))
  })

  test('one server twice, also by another database', async () => {
    await refuses(
      [...nowhere(2), '--url', `${urlOf({ port: 2 })}/1`],
      /^baton: --url names the server 127\.0\.0\.1:2 twice; /,
    )
  })

  test.each([
    ['redis+cluster://a,b', 'a cluster'],
    ['redis+sentinel://a/m', 'sentinels'],
  ])('%s among them', async (url, what) => {
    await refuses(
      [...nowhere(2), '--url', url],
      new RegExp(`^baton: --url is given 3 times, and one of them names ${what}, `),
    )
  })

  test('no address among them', async () => {
    await refuses([...nowhere(2), '--url', password], /^baton: --url is not an address of Redis; /)
  })

  test.each([[['--permits', '2']], [['--read']], [['--write']]])('a lock of another kind: %j', async kind => {
    const { code, errors } = await ended('run', 'k', ...nowhere(3), ...kind, '--', 'true')
    expect(code).toBe(64)
    expect(errors).toMatch(/^baton: a quorum \(several --url\) has only mutexes, [^\n]*\n$/)
  })

  test.each(['bench', 'demo'])('%s works with one server', async name => {
    const { code, errors } = await ended(name, ...nowhere(3))
    expect(code).toBe(64)
    expect(errors).toMatch(
      new RegExp(`^baton: baton ${name} works with one server, but --url names 3 servers; [^\n]*\n$`),
    )
  })

  async function refuses(given: readonly string[], why: RegExp): Promise<void> {
    for (const args of [
      ['run', 'k', ...given, '--', 'true'],
      [...given, 'list'],
    ]) {
      const { code, output, errors } = await ended(...args)
      expect({ code, output }).toEqual({ code: 64, output: '' })
      expect(errors).toMatch(why)
      expect(errors).toMatch(/^[^\n]*\n$/)
    }
  }
})

/** Tests the whole demo as a user runs it, both built and from source, and what the demo leaves behind. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type LocalRedis, obtainRedis } from '../../../local-redis/index.ts'
import { runNode } from '../../kit/program.ts'
import { emptyFolder } from '../../kit/temp.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const built = ['dist/cli/main.js']
const source = ['--import', 'tsx', 'cli/main.ts']
const slow = 90_000

let server: LocalRedis
let redis: Redis
/** The demo's keys that existed before the test. A shared server may have such keys. */
let before: Set<string>

beforeAll(async () => {
  server = await obtainRedis()
  redis = new Redis(server.url)
  before = new Set(await redis.keys('baton-demo:*'))
}, slow)

afterAll(async () => {
  redis?.disconnect()
  await server?.stop()
})

function start(program: string[], ...args: string[]): ChildProcess {
  // FORCE_COLOR requests colours. But the output is a pipe, so the demo must print none.
  return spawn(process.execPath, [...program, 'demo', ...args], {
    cwd: root,
    env: { ...process.env, FORCE_COLOR: '1' },
  })
}

async function run(program: string[], ...args: string[]) {
  const child = start(program, ...args)
  const [out, err, [code]] = await Promise.all([text(child.stdout!), text(child.stderr!), once(child, 'exit')])
  return { out, err, code }
}

async function keysLeft(): Promise<string[]> {
  return (await redis.keys('baton-demo:*')).filter(key => !before.has(key))
}

describe('with the lock', () => {
  test('50 are sold, nothing is violated, and nothing is left behind', { timeout: slow }, async () => {
    const startedAt = Date.now()
    const { out, err, code } = await run(built, '--url', server.url)
    expect(err).toBe('')
    expect(out).toContain(
      '50 sold, 0 oversold, 0 second sales to a customer, 0 requests overtaken, 0 overlapping critical sections.\nPassed in',
    )
    expect(code).toBe(0)
    expect(out).toMatch(/^Redis: .*\nFlash sale: 50 coupons, 400 orders of 300 customers, 4 workers, one fair lock\n/)
    expect(out).toMatch(/SIGKILL ended W2, which held the lock/)
    expect(out).toMatch(/SIGSTOP froze W3, which held the lock/)
    expect(out).toMatch(/late write refused/)
    expect(out).toMatch(/ok +crash cost +\d\.\d\d s/)
    expect(out).toMatch(/hand-off p50 \/ p99 +\d+\.\d\d \/ \d+\.\d\d ms/)
    expect(out).not.toContain('\u001b')
    expect(out).not.toContain('VIOLATED')
    expect(Date.now() - startedAt).toBeLessThan(30_000)
    expect(await keysLeft()).toEqual([])
  })
})

describe('without a Redis on the machine', () => {
  test.each([
    { args: [], code: 0, says: '50 sold, 0 oversold' },
    { args: ['--no-lock'], code: 1, says: 'The sale went wrong, as expected without a lock.' },
  ])('it plays in the memory of its process, and says so: $args', { timeout: slow }, async ({ args, code, says }) => {
    const nothing = await emptyFolder()
    const env = { PATH: nothing, DOCKER_HOST: `unix://${nothing}/none.sock`, BATON_CACHE: nothing, REDIS_URL: '' }
    const ending = await runNode([...built, 'demo', ...args], { cwd: root, env })
    expect([ending.code, ending.errors]).toEqual([code, ''])
    expect(ending.output).toMatch(/^Redis: none found, so .* memory of one process.*\nTo see it with .* --url/)
    expect(ending.output).toContain('disconnecting ended W2')
    expect(ending.output).toContain('disconnecting froze W3')
    expect(ending.output).toContain(says)
  })
})

describe('without the lock', () => {
  test('it oversells, sells twice, overlaps, and reports so by its exit code', { timeout: slow }, async () => {
    const { out, code } = await run(source, '--no-lock', '--url', server.url)
    expect(code).toBe(1)
    expect(out).toMatch(/VIOLATED +oversold +[1-9]/)
    expect(out).toMatch(/VIOLATED +second sales +[1-9]/)
    expect(out).toMatch(/VIOLATED +overlapping sections +[1-9]/)
    expect(out).toMatch(/VIOLATED +late write +accepted/)
    expect(out).toContain('The sale went wrong, as expected without a lock.')
    expect(out).not.toContain('\u001b')
    expect(await keysLeft()).toEqual([])
  })
})

describe('ended early', () => {
  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)(
    '%s: workers ended, the frozen one too, keys deleted, exit code %i',
    { timeout: slow },
    async (signal, expected) => {
      const child = start(built, '--url', server.url)
      await untilOutput(child, /SIGSTOP froze W3/)
      const workers = childrenOf(child.pid!)
      expect(workers).toHaveLength(4)
      child.kill(signal)
      const [code] = await once(child, 'exit')
      expect(code).toBe(expected)
      expect(workers.filter(isRunning)).toEqual([])
      expect(await keysLeft()).toEqual([])
    },
  )

  test('Redis out of reach: exit code 69, and no password in the message', { timeout: slow }, async () => {
    const { out, err, code } = await run(built, '--url', 'redis://someone:secret@127.0.0.1:1')
    expect(code).toBe(69)
    expect(err).toMatch(/^baton: Redis at 127\.0\.0\.1:1 cannot be used: .*ECONNREFUSED/)
    expect(out + err).not.toContain('secret')
  })

  test.each([
    ['an address', ['--url', 'someone:secret@host'], 64],
    ['an option', ['--bogus'], 64],
  ] as const)('%s that cannot be used', { timeout: slow }, async (_what, args, expected) => {
    const { out, err, code } = await run(built, ...args)
    expect(code).toBe(expected)
    expect(out + err).not.toContain('secret')
  })
})

/** Returns the process ids of the workers, which are the demo's only children if the demo is given a URL. */
function childrenOf(parent: number): number[] {
  const table = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' })
  const rows = table
    .trim()
    .split('\n')
    .map(row => row.trim().split(/\s+/).map(Number))
  return rows.filter(([, ppid]) => ppid === parent).map(([pid]) => pid!)
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Waits for this output, and keeps reading afterwards, because a closed pipe would end the demo. */
function untilOutput(child: ChildProcess, pattern: RegExp): Promise<void> {
  return new Promise(resolve => {
    let seen = ''
    child.stdout!.setEncoding('utf8').on('data', (chunk: string) => {
      seen += chunk
      if (pattern.test(seen)) resolve()
    })
  })
}

/**
 * Tests the streams of `baton`: output that nobody reads to the end, input from a pipe or a file, and output without
 * colours.
 */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect } from 'vitest'
import { client, freshKey, redisUrl, test } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'
import { baton, STARTUP, start } from './baton.ts'

const program = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url))

/** Runs a line in a shell. In this line, `baton` stands for the built program. */
async function shell(line: string, env: NodeJS.ProcessEnv = {}): Promise<{ stdout: string; stderr: string }> {
  const named = `baton() { "${process.execPath}" "${program}" "$@"; }; ${line}`
  return promisify(execFile)('bash', ['-c', named], { env: { ...process.env, REDIS_URL: redisUrl(), ...env } })
}

describe('a reader that goes away is no failure', () => {
  test('before anything is written', async () => {
    const { stdout, stderr } = await shell(`(baton list --json; echo "exit $?" >&2) | true`)
    expect({ stdout, stderr }).toEqual({ stdout: '', stderr: 'exit 0\n' })
  })

  test('after the first line of many', async ({ locks }) => {
    const name = freshKey()
    await Promise.all(Array.from({ length: 1_500 }, (_, i) => locks.lock(`${name}:${i}:${'x'.repeat(60)}`)))
    const { stdout, stderr } = await shell(`(baton list '${name}:*'; echo "exit $?" >&2) | head -1`)
    expect(stdout).toMatch(/^lock +holder/)
    expect(stderr).toBe('exit 0\n')
  })

  test('if there has never been one', async () => {
    expect(await shell('baton list >&- 2>&-; echo "exit $?"')).toEqual({ stdout: 'exit 0\n', stderr: '' })
  })
})

test('output that cannot be written is a failure', async () => {
  const { stdout } = await shell('baton list >/dev/full 2>/dev/null; echo "exit $?"')
  expect(stdout).toBe('exit 73\n')
})

describe('the streams of run are those of its command', () => {
  test('what is piped in', async () => {
    const { stdout } = await shell(`printf 'a\\nb\\n' | baton run ${freshKey()} -- tr a-z A-Z`)
    expect(stdout).toBe('A\nB\n')
  })

  test('nothing is added to them', async () => {
    const { stdout, stderr } = await shell(`baton run ${freshKey()} -- sh -c 'echo out; echo err >&2'`)
    expect({ stdout, stderr }).toEqual({ stdout: 'out\n', stderr: 'err\n' })
  })
})

describe('waiting without a terminal', () => {
  const waitingFor = async (...options: string[]) => {
    const key = freshKey()
    const lease = await client({ label: 'somebody' }).lock(key)
    const running = start(['run', key, '--fair', ...options, '--', 'echo', 'done'])
    await eventually(async () => (await client().inspect(key)).waiters.length === 1, STARTUP)
    // The waiter appears in Redis's queue slightly before the program knows that it is queued. So also wait until the
    // program has printed that it waits.
    if (options.includes('--verbose')) await eventually(() => running.errors() !== '', STARTUP)
    await lease.release()
    const { code, output, errors } = await running.ended
    expect({ code, output }).toEqual({ code: 0, output: 'done\n' })
    return { key, errors }
  }

  test('is silent', async () => {
    expect((await waitingFor()).errors).toBe('')
  })

  test('unless --verbose asks for the reason', async () => {
    const { key, errors } = await waitingFor('--verbose')
    const [first, last, ...rest] = errors.trimEnd().split('\n')
    expect(first).toMatch(
      new RegExp(`^baton: waiting for ${key}, held by somebody for \\S+, at position 1 of the queue$`),
    )
    expect(last).toMatch(new RegExp(`^baton: waited \\S+ for ${key}$`))
    expect(rest).toEqual([])
  })
})

describe('what is printed for scripts and for people', () => {
  test('--json: these fields, and no others', async ({ key }) => {
    const locks = client({ label: 'holder' })
    await locks.lock(key)
    const wait = client({ label: 'waiter' }).lock(key, { fair: true })
    wait.catch(() => {})
    await eventually(async () => (await locks.inspect(key)).waiters.length === 1)
    const one = JSON.parse((await baton('inspect', key, '--json')).output)
    const holder = ['fencingToken', 'heldFor', 'id', 'label', 'owner', 'ttl']
    const whole = [...holder.filter(name => name !== 'id'), 'holders', 'holds', 'key', 'kind', 'locked', 'waiters']
    expect(Object.keys(one).sort()).toEqual(whole.sort())
    expect(Object.keys(one.holders[0]).sort()).toEqual(holder)
    expect(Object.keys(one.waiters[0]).sort()).toEqual(['expiresIn', 'id', 'label', 'owner', 'position', 'waited'])
    expect(one.heldFor).toBeGreaterThan(0)
    expect(one.heldFor).toBeLessThan(60_000)
    const [listed] = JSON.parse((await baton('list', key, '--json')).output)
    expect(Object.keys(listed).sort()).toEqual(whole.sort())
    const free = JSON.parse((await baton('inspect', freshKey(), '--json')).output)
    expect(Object.keys(free).sort()).toEqual(['holders', 'holds', 'key', 'kind', 'locked', 'waiters'])
  })

  test('every command explains its use, with examples', async () => {
    const { output } = await baton('--help')
    const names = [...output.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name!)
    const all = ['run', 'inspect', 'list', 'top', 'ui', 'release', 'dashboard', 'bench', 'demo', 'completion', 'help']
    expect(names).toEqual(all)
    for (const name of names.filter(name => name !== 'help')) {
      const { code, output } = await baton(name, '--help')
      expect(code).toBe(0)
      expect(output).toMatch(new RegExp(`\\nExamples:\\n {2}[^\\n]*\\bbaton ${name}\\b`))
    }
  })
})

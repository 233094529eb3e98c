/** Tests `baton top` as a person uses it: in a terminal, with keys. */
import { describe, expect, test } from 'vitest'
import { park } from '../../kit/parking.ts'
import { faultProxy } from '../../kit/proxies.ts'
import { client, freshKey, redisUrl } from '../../kit/redis.ts'
import { batonInTerminal, Terminal } from './tmux.ts'

const environment = { REDIS_URL: redisUrl() }

function top(name: string, ...args: string[]): Promise<Terminal> {
  return batonInTerminal(['top', `${name}*`, '--interval', '100ms', ...args], { env: environment })
}

/**
 * Takes three locks. `c` has a queue of two waiters. `a` has one waiter, which has waited longest. `b` has no waiters.
 */
async function threeLocks(name: string) {
  const holder = client({ label: 'the holder' })
  const leases = new Map()
  for (const key of ['a', 'b', 'c']) leases.set(key, await holder.lock(`${name}${key}`))
  for (const [key, label] of [
    ['a', 'the first'],
    ['c', 'the second'],
    ['c', 'the third'],
  ] as const) {
    await park(client({ label }), `${name}${key}`, { fair: true })
  }
  return leases
}

/** Returns a name so short that `baton top` shows it whole at 80 columns. */
function freshName(): string {
  return `${freshKey('t').slice(0, 12)}:`
}

describe('at 80 × 24', () => {
  test('every lock, its holder, its times and its queue', async () => {
    const name = freshName()
    const leases = await threeLocks(name)
    const terminal = await top(name)
    const screen = await terminal.eventually('3 waiting')
    const [figures, status, titles, ...rows] = screen.split('\n')
    expect(figures).toMatch(/^127\.0\.0\.1:\d+ {2}3 held {2}2 with a queue {2}3 waiting, longest \S+/)
    expect(status).toMatch(/^reading every \d/)
    expect(titles).toMatch(/^ {2}LOCK +HOLDER +HELD +LEFT +QUEUE▾ +LONGEST$/)
    expect(rows[0]).toMatch(new RegExp(`^> ${name}c +the holder +\\S+ +\\S+ +2 +\\S+$`))
    expect(rows[2]).toMatch(new RegExp(`^ {2}${name}b +the holder +\\S+ +\\S+$`))
    expect(screen.split('\n').at(-1)).toMatch(/^↑↓ move .* q quit$/)
    expect((await terminal.cursor()).visible).toBe(false)

    await leases.get('c').release()
    await terminal.eventually(new RegExp(`${name}c +the second +\\S+ +\\S+ +1 `))
  })

  test('open a lock and see its queue move', async () => {
    const name = freshName()
    const leases = await threeLocks(name)
    const terminal = await top(name)
    await terminal.eventually('3 waiting')
    await terminal.press('Enter')
    const open = await terminal.eventually('fencing token')
    expect(open).toContain(`${name}c\n  holder the holder\n`)
    expect(open).toContain(`fencing token ${leases.get('c').fencingToken}`)
    expect(open).toMatch(/^ +1 the second +\S+ +\S+ +\S+$\n^ +2 the third /m)
    await leases.get('c').release()
    await terminal.eventually(/holder the second[\s\S]+^ +1 the third/m)
    await terminal.press('Escape')
    await terminal.eventually('QUEUE▾')
  })
})

test('resize', async () => {
  const name = freshName()
  await threeLocks(name)
  const terminal = await top(name)
  await terminal.eventually('3 waiting')
  // A filter is typed in the last line, so the cursor is there. When a terminal becomes smaller, it keeps the line of
  // the cursor, and its first lines disappear.
  await terminal.press('/')
  await terminal.eventually('filter:')
  await terminal.resize(80, 9)
  await terminal.eventually(shown => /^ {2}LOCK +HOLDER/.test(shown.split('\n')[2]!) && shown.endsWith('\nfilter:'))
  await terminal.press('Escape')
  await terminal.eventually('q quit')
  await terminal.resize(140, 10)
  const wide = await terminal.eventually(shown => shown.split('\n')[2]!.length > 80)
  expect(wide.split('\n')).toHaveLength(10)
  expect(wide.split('\n').at(-1)).toContain('q quit')
  await terminal.resize(40, 8)
  const narrow = await terminal.eventually(shown => shown.split('\n').length === 8)
  expect(narrow).toContain(`> ${name.slice(0, 4)}`)
})

describe('leaves the terminal as it was', () => {
  /** Opens a shell, which prints something and then runs `baton`. */
  async function inShell(name: string): Promise<Terminal> {
    const terminal = await Terminal.open(['bash', '--norc', '-i'], { env: { ...environment, PS1: '$ ' } })
    await terminal.eventually('$')
    await terminal.enter(`echo before; "${process.execPath}" dist/cli/main.js top '${name}*'; echo "ended by $?"`)
    await terminal.eventually('no lock is held')
    expect(await terminal.screen()).not.toContain('before')
    return terminal
  }

  test.each([
    ['q', 'q'],
    ['Ctrl-C', 'C-c'],
  ])('at %s', async (_, key) => {
    const terminal = await inShell(freshName())
    await terminal.press(key)
    const screen = await terminal.eventually('ended by 0')
    expect(screen).toContain('before\n')
    expect((await terminal.cursor()).visible).toBe(true)
    // The terminal must echo again, and wrap long lines.
    await terminal.type(`echo ${'x'.repeat(90)}`)
    await terminal.eventually('x'.repeat(20))
  })

  test.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
    ['SIGHUP', 129],
  ] as const)('at %s', async (signal, code) => {
    const terminal = await batonInTerminal(['top', freshName()], { env: environment })
    await terminal.eventually('no lock is held')
    process.kill(await terminal.pid(), signal)
    expect(await terminal.exitCode()).toBe(code)
    expect(await terminal.screen()).not.toContain('no lock is held')
    // The cursor cannot be queried after the program has ended, so check the last output: it shows the cursor again.
    expect(await terminal.output()).toSatisfy((written: string) => written.endsWith('\u001b[?25h\u001b[?1049l'))
  })

  test('while its shell has stopped it', async () => {
    const terminal = await inShell(freshName())
    await terminal.press('C-z')
    expect(await terminal.eventually('Stopped')).toContain('before')
    await terminal.enter('fg')
    await terminal.eventually('no lock is held')
    await terminal.press('q')
    await terminal.eventually('before')
  })
})

test('Redis goes away and comes back', async () => {
  const name = freshName()
  const leases = await threeLocks(name)
  const proxy = await faultProxy(redisUrl())
  const terminal = await top(name, '--url', proxy.url)
  await terminal.eventually('3 held')
  proxy.refuse()
  proxy.cut()
  expect(await terminal.eventually(/as of \S+ ago: .+/)).toContain('3 held')
  await leases.get('b').release()
  proxy.accept()
  await terminal.eventually(/2 held[^\n]*\nreading every/)
})

test.each(['q', 'C-c'])('%s ends it at once while Redis hangs', async key => {
  const name = freshName()
  await threeLocks(name)
  const proxy = await faultProxy(redisUrl())
  const terminal = await top(name, '--url', proxy.url)
  await terminal.eventually('3 held')
  proxy.swallow('down')
  await terminal.eventually(/no answer from Redis for|as of \S+ ago:/)
  await terminal.press(key)
  // If the pressed key did not end the program, the program would wait 15 s for Redis to come back.
  expect(await terminal.exitCode(4_000)).toBe(0)
})

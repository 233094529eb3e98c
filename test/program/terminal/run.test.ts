/** Tests `baton run` in a terminal: the line that shows what `baton` waits for, and interactive commands. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished } from 'vitest'
import { client, freshKey, redisUrl, test } from '../../kit/redis.ts'
import { emptyFolder } from '../../kit/temp.ts'
import { eventually } from '../../kit/time.ts'
import { bash, PROMPT } from './shell.ts'
import { batonInTerminal, type Terminal, type TerminalOptions } from './tmux.ts'

const run = (args: readonly string[], options: TerminalOptions = {}): Promise<Terminal> =>
  batonInTerminal(['run', ...args], { ...options, env: { REDIS_URL: redisUrl(), ...options.env } })

const node = (script: string) => [process.execPath, '-e', script]
/** A command that counts SIGINTs, and ends when a line is typed. */
const counting = node(
  [
    'let count = 0',
    'process.on("SIGINT", () => console.log("interrupted", ++count))',
    'process.stdin.once("data", () => process.exit(count))',
    'console.log("runs")',
  ].join('; '),
)

describe('waiting is visible', () => {
  test('position, holder and time are in one line, which follows the queue and disappears when the command begins', async () => {
    const key = freshKey('nightly')
    const [first, second] = [client({ label: 'web-1' }), client({ label: 'web-2' })]
    const lease = await first.lock(key)
    const next = second.lock(key, { fair: true })
    next.catch(() => {}) // this call rejects if the test ends early
    await eventually(async () => (await first.inspect(key)).waiters.length === 1)

    const terminal = await run(
      [key, '--fair', '--', ...node(`console.log('started'); process.stdin.once('data', () => process.exit())`)],
      {
        columns: 120,
      },
    )
    const line = (place: string, holder: string) =>
      new RegExp(`^waiting \\d\\S* \\(${place}\\) for ${key}, held by ${holder} for \\d\\S*$`)
    await terminal.eventually(line('2 of 2', 'web-1'))
    await lease.release()
    await terminal.eventually(line('1 of 1', 'web-2'))
    await (await next).release()

    // The line is gone, and the terminal is as before: the cursor is visible and in the right place.
    expect(await terminal.eventually(/^started$/)).toBe('started')
    expect(await terminal.cursor()).toEqual({ row: 1, column: 0, visible: true })
    await terminal.press('Enter')
    expect(await terminal.exitCode()).toBe(0)
  })

  test('it is one line on a narrow terminal too, whatever it contains, and after a change of size', async () => {
    const key = `${freshKey('夜間報告書-レポート')}-\u001b[2J${'長'.repeat(30)}`
    await client({ label: `机器-${'主'.repeat(40)}\u001b[31m` }).lock(key)
    const terminal = await run([key, '--fair', '--', 'true'], { columns: 70, rows: 10 })
    const wide = await terminal.eventually(/^waiting [^\n]*$/)
    expect(wide).toMatch(/^waiting \S+ \(1 of 1\) for 夜間\S*…\S*, held by 机器-?主*…\S* for \S+$/)
    expect(width(wide)).toBeLessThan(70)
    // The smaller terminal wraps the line that it already shows, and keeps the wrapped text on the screen. The next
    // line that `baton` writes must fit the new width.
    await terminal.resize(30, 10)
    await terminal.eventually(screen => /^waiting .*…$/.test(lastOf(screen)) && width(lastOf(screen)) < 30)
    await terminal.press('C-c')
    expect(await terminal.exitCode()).toBe(130)
  })

  test('Ctrl-C leaves the queue', async ({ locks, key }) => {
    await locks.lock(key)
    const terminal = await run([key, '--fair', '--', 'echo', 'started'])
    await terminal.eventually('waiting')
    await terminal.press('C-c')
    expect(await terminal.exitCode()).toBe(130)
    expect((await locks.inspect(key)).waiters).toEqual([])
    expect(await terminal.screen()).not.toMatch(/waiting|started/)
  })
})

describe('an interactive command works as without baton', () => {
  test('Ctrl-C reaches it once', async () => {
    const terminal = await run([freshKey(), '--', ...counting])
    await terminal.eventually('runs')
    await terminal.press('C-c')
    await terminal.eventually('interrupted 1')
    await terminal.press('C-c')
    await terminal.eventually('interrupted 2')
    await terminal.press('Enter')
    expect(await terminal.exitCode()).toBe(2)
  })

  test('if the input of baton is a pipe, Ctrl-Z stops the command together with baton, which renews its lock', async () => {
    const terminal = await bash()
    // The command is a Node program, and not a shell: if a shell is stopped just while it starts a program, the system
    // does not report the shell as stopped.
    const count = node(
      `const { writeFileSync: write } = require("fs"); write("pid", String(process.pid)); let i = 0; setInterval(() => write("count", String(++i)), 50)`,
    )
    const folder = await emptyFolder()
    await terminal.enter(`cd ${folder}; sleep 60 | baton run ${freshKey()} -- ${quoted(count)}`)
    const told = (file: string) => readFile(join(folder, file), 'utf8').catch(() => '')
    await eventually(async () => (await told('count')) !== '', 15_000)
    const status = `/proc/${await told('pid')}/status`
    await terminal.press('C-z')
    await terminal.eventually(/Stopped/)
    await eventually(async () => /^State:\s+T/m.test(await readFile(status, 'utf8')))
    const then = await told('count')
    await terminal.enter('fg')
    await eventually(async () => (await told('count')) !== then, 15_000)
    await terminal.press('C-c')
    await terminal.eventually(new RegExp(`\\^C\\n${PROMPT}$`))
  })

  test('losing the lock ends only the command: its children are in one group with the shell’s job', async ({ key }) => {
    const folder = await emptyFolder()
    const script = `sh -c 'echo $$ >pid; exec sleep 60' & echo runs; wait`
    const terminal = await run([key, '--', 'sh', '-c', `cd ${folder}; ${script}`])
    await terminal.eventually('runs')
    const pid = Number(await eventually(() => readFile(join(folder, 'pid'), 'utf8').catch(() => '')))
    onTestFinished(() => void process.kill(pid, 'SIGKILL'))
    expect(await client().forceRelease(key)).toBe(true)
    expect(await terminal.exitCode()).toBe(75)
    expect(process.kill(pid, 0)).toBe(true)
  })

  test('what it changes of the terminal stays changed', async () => {
    const terminal = await bash()
    await terminal.enter(`baton run ${freshKey()} -- stty -onlcr; stty -a | grep -o -- '-*onlcr'; stty onlcr`)
    await terminal.eventually(/^ *-onlcr$/m)
  })

  test('a shell with job control ignores SIGTERM for itself only', async () => {
    const terminal = await bash()
    await terminal.enter(`baton run ${freshKey()} -- sh -c 'echo runs; exec sleep 60' </dev/null &`)
    await terminal.eventually(/ runs$/m)
    await terminal.enter('kill $!; wait $!; echo code $?')
    await terminal.eventually('\ncode 143')
  })

  test('Ctrl-Z stops it, and fg continues it', async () => {
    const terminal = await bash()
    await terminal.enter(`baton run ${freshKey()} -- sh -c 'echo runs; exec cat'`)
    // Wait until the command runs, because earlier input would go to the shell.
    await terminal.eventually(/^runs$/m)
    await terminal.enter('one')
    await terminal.eventually(/\none\none/)
    await terminal.press('C-z')
    await terminal.eventually(new RegExp(`Stopped[^]*\\n${PROMPT}$`))
    await terminal.enter('fg')
    await terminal.eventually(/> fg\nbaton run/)
    await terminal.enter('two')
    await terminal.eventually(/\ntwo\ntwo/)
    await terminal.press('C-d')
    await terminal.eventually(new RegExp(`\\n${PROMPT}$`))
    await terminal.enter('echo code $?')
    await terminal.eventually('\ncode 0')
  })
})

function quoted(words: readonly string[]): string {
  return words.map(word => `'${word}'`).join(' ')
}

function lastOf(screen: string): string {
  return screen.split('\n').at(-1)!
}

/** Returns the width of the text in columns. The characters in these tests have one or two columns. */
function width(text: string): number {
  return [...text].reduce((sum, character) => sum + (character.codePointAt(0)! > 0x2e80 ? 2 : 1), 0)
}

/**
 * Compares what a command inherits under `baton run` with what it inherits under `flock`. Each script runs twice, in an
 * empty folder: `$W` is the beginning of the command line of the one, then of the other.
 */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect } from 'vitest'
import { client, freshKey, redisUrl, test } from '../../kit/redis.ts'
import { emptyFolder } from '../../kit/temp.ts'
import { eventually } from '../../kit/time.ts'
import { baton, STARTUP } from './baton.ts'

const program = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url))

interface Seen {
  readonly code: number
  readonly output: string
  readonly errors: string
}

/** Runs a script of Bash, and returns what it has printed. */
async function script(text: string, wrapper: string): Promise<Seen> {
  const options = { cwd: await emptyFolder(), env: { ...process.env, REDIS_URL: redisUrl(), W: wrapper } }
  const running = promisify(execFile)('bash', ['-c', text], options)
  const { stdout, stderr } = await running.catch((failed: { stdout: string; stderr: string }) => failed)
  return { code: running.child.exitCode!, output: stdout, errors: stderr }
}

function underFlock(text: string): Promise<Seen> {
  // Without -o, the command would have the descriptor of the lock's file, too.
  return script(text, 'flock -o lock')
}

function underBaton(text: string): Promise<Seen> {
  return script(text, `${process.execPath} ${program} run ${freshKey()} --`)
}

async function same(text: string): Promise<Seen> {
  const [flock, baton] = await Promise.all([underFlock(text), underBaton(text)])
  expect(baton).toEqual(flock)
  return baton
}

describe('descriptors', () => {
  test.each([
    ['a report on 3', `$W sh -c 'echo line >&3' 3>report; cat report`],
    ['a log on 9', `exec 9>>log; $W sh -c 'echo line >&9'; cat log`],
    ['a pipe on 11', `$W cat /dev/fd/11 11< <(echo line)`],
    ['a pipe on 20', `$W cat /dev/fd/20 20< <(echo line)`],
    ['a copy of stdout, which is a pipe', `$W sh -c 'echo line >&3' 3>&1 4>&1 >/dev/null`],
    // The jobserver of make is such a pipe.
    [
      'both ends of one pipe',
      `: | { exec 5<&0 6>/dev/fd/0 </dev/null; $W sh -c 'echo line >&6; read -r line <&5; echo $line'; }`,
    ],
  ])('%s', async (_, text) => {
    expect(await same(text)).toMatchObject({ output: 'line\n', errors: '' })
  })

  test('no others: none of those that baton has opened for itself', async () => {
    const { output } = await same(`exec 4</dev/null 13</dev/null; $W ls /proc/self/fd`)
    expect(output.split('\n')).toEqual(expect.arrayContaining(['0', '1', '2', '4', '13']))
  })

  // A pipe has one such flag for all who use it: other programs of the script would fail to write to it.
  test.each([
    ['waits', (key: string) => `run ${key} --fair --verbose -- true`],
    ['is open for a page', () => `ui`],
  ])('a shared pipe stays as it is while baton %s', async (_, args) => {
    const key = freshKey()
    const lease = await client().lock(key)
    const { output } = await script(
      `{ $W </dev/null & until [ -s begun ]; do sleep 0.05; done; cat /proc/self/fdinfo/1; kill $!; } 2>&1 | tee begun`,
      `${process.execPath} ${program} ${args(key)}`,
    )
    await lease.release()
    expect(output).toMatch(/^(baton: waiting|http)/m)
    expect(Number.parseInt(/^flags:\s+(\d+)$/m.exec(output)![1]!, 8) & 0o4000).toBe(0)
  })
})

describe('signals that the caller ignores', () => {
  const work = (signal: string) =>
    `sh -c 'touch begun; until [ -e sent ]; do sleep 0.05; done; kill -${signal} $$; echo finished'`
  /** Sends the signal to the program while its command runs. */
  const story = (start: string, signal: string) =>
    `${start} ${work(signal)} </dev/null 2>errors & until [ -e begun ]; do sleep 0.05; done; kill -${signal} $!; touch sent; wait $!; echo $?`

  test.each([
    ['nohup', story(`nohup $W`, 'HUP')],
    ['a script that ignores HUP', story(`trap '' HUP; $W`, 'HUP')],
    ['a script that ignores TERM', story(`trap '' TERM; $W`, 'TERM')],
    ['a script that ignores INT', story(`trap '' INT; $W`, 'INT')],
  ])('%s: neither baton nor the command is ended', async (_, text) => {
    expect(await same(text)).toMatchObject({ output: 'finished\n0\n' })
  })

  test('the wait for the lock goes on, too', async ({ locks, key }) => {
    await locks.lock(key)
    const waits = join(await emptyFolder(), 'waits')
    const ended = script(
      `trap '' TERM; $W run ${key} --fair --timeout 3s -- true & until [ -e ${waits} ]; do sleep 0.05; done; kill $!; wait $!; echo $?`,
      `${process.execPath} ${program}`,
    )
    await eventually(async () => (await locks.inspect(key)).waiters.length === 1, STARTUP)
    await writeFile(waits, '')
    expect((await ended).output).toBe('124\n')
  })

  test('but not what a program ignores while it waits for system(3)', async () => {
    const { output } = await same(`perl -e 'system(split(" ", $ENV{W}), "sh", "-c", q(kill -INT $$)); print $? >> 8'`)
    expect(output).toBe('130')
  })

  test('without that, the signal reaches the command; a broken pipe ends it', async () => {
    expect((await same(`$W sh -c 'kill -TERM $$'; echo $?`)).output).toBe('143\n')
    expect((await same(`$W sh -c 'kill -PIPE $$'; echo $?`)).output).toBe('141\n')
    const { output } = await underBaton(
      `$W sh -c 'touch begun; exec sleep 60' </dev/null & until [ -e begun ]; do sleep 0.05; done; kill $!; wait $!; echo $?`,
    )
    expect(output).toBe('143\n')
  })
})

describe('bytes that are no UTF-8', () => {
  const odd = String.raw`$'caf\351'`

  test.each([
    ['an argument of the command', `$W run k -- echo ${odd}`, 'an argument is not UTF-8: caf\uFFFD'],
    ['a key', `$W run ${odd} -- echo ran`, 'an argument is not UTF-8: caf\uFFFD'],
    ['a key to look at', `$W inspect ${odd}`, 'an argument is not UTF-8: caf\uFFFD'],
    ['a variable', `ODD=${odd} $W run k -- echo ran`, 'the environment variable ODD is not UTF-8'],
  ])('%s is refused, because Node would change it', async (_, text, message) => {
    const { code, output, errors } = await script(text, `${process.execPath} ${program}`)
    expect({ code, output }).toEqual({ code: 64, output: '' })
    expect(errors).toContain(message)
    expect(errors.trimEnd()).not.toContain('\n')
  })

  test('all of UTF-8 arrives, the character that stands for what is none included', async () => {
    const { output } = await same(`ODD=\uFFFD😀 $W sh -c 'echo "$0 $ODD"' é\uFFFD`)
    expect(output).toBe('é\uFFFD \uFFFD😀\n')
  })
})

test('folder, mask of files, priority and environment are the same', async () => {
  const { output } = await same(
    `umask 027; mkdir sub; cd sub; A_B='a b' nice -n 3 $W sh -c 'basename "$PWD"; umask; nice; echo "$A_B"'`,
  )
  expect(output).toBe('sub\n0027\n3\na b\n')
})

test('the limit of open files is the one thing that is not: the command has the hard limit', async () => {
  const limits = `ulimit -Sn 256; ulimit -Hn; $W sh -c 'ulimit -Sn'`
  const [hard, soft] = (await underFlock(limits)).output.split('\n')
  expect(soft).toBe('256')
  expect((await underBaton(limits)).output).toBe(`${hard}\n${hard}\n`)
  expect((await underBaton(`$W sh -c 'ulimit -Sn 256; exec sh -c "ulimit -Sn"'`)).output).toBe('256\n')
})

test('a command that does not exist has the same exit code, whether the caller ignores a signal or not', async () => {
  expect((await baton('run', freshKey(), '--', 'no-such-command')).code).toBe(127)
  expect((await underBaton(`trap '' HUP; $W no-such-command; echo $?`)).output).toBe('127\n')
})

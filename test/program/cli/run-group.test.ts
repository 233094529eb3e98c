/**
 * Tests processes that the command of `baton run` has started. If the lock is lost, `baton run` ends all of them. If
 * the command ends, `baton run` waits for none of them.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished } from 'vitest'
import { client, freshKey, test } from '../../kit/redis.ts'
import { emptyFolder } from '../../kit/temp.ts'
import { eventually, sleep } from '../../kit/time.ts'
import { type Running, STARTUP, start } from './baton.ts'

interface Job {
  readonly folder: string
  readonly running: Running
  /** The process id of the process that the command started. */
  readonly grandchild: number
  /** How often that process has recorded that it is working. */
  ticks(): Promise<number>
}

const ticking = 'while :; do echo tick >>ticks; sleep 0.05; done'

/** Runs a shell as the command of `baton run`. That shell starts another one, which works endlessly. */
async function job(
  key: string,
  {
    worker = ticking,
    command = 'sh worker.sh; true',
    args = [],
  }: Partial<Record<'worker' | 'command', string>> & { args?: string[] } = {},
): Promise<Job> {
  const folder = await emptyFolder()
  const file = (name: string) => join(folder, name)
  await writeFile(file('worker.sh'), `echo $$ >pid\n${worker}\n`)
  await writeFile(file('job.sh'), `cd '${folder}'\n${command}\n`)
  const running = start(['run', key, ...args, '--', 'sh', file('job.sh')])
  const ticks = async () => (await readFile(file('ticks'), 'utf8').catch(() => '')).length / 'tick\n'.length
  await eventually(async () => (await ticks()) > 0, STARTUP)
  const grandchild = Number(await readFile(file('pid'), 'utf8'))
  onTestFinished(() => {
    if (isThere(grandchild)) process.kill(grandchild, 'SIGKILL')
  })
  return { folder, running, grandchild, ticks }
}

/**
 * Returns whether the process still runs. An ended process that its parent has not collected yet (a zombie) does not
 * count.
 */
function isThere(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

describe('a lock that is lost', () => {
  test('I8: ends the command’s children, too, so that nothing works beside the next holder', async ({ key }) => {
    const { running, grandchild, ticks } = await job(key)
    expect(await client().forceRelease(key)).toBe(true)
    expect(await running.ended).toMatchObject({ code: 75 })
    expect(isThere(grandchild)).toBe(false)
    const then = await ticks()
    await sleep(300)
    expect(await ticks()).toBe(then)
  })

  test('a process that ignores SIGTERM is ended by SIGKILL after --grace, also if the command itself ended before', async () => {
    const key = freshKey()
    const worker = `trap '' TERM; ${ticking}`
    const { running, grandchild, ticks } = await job(key, { worker, args: ['--grace', '1s'] })
    await client().forceRelease(key)
    const then = await ticks()
    await eventually(async () => (await ticks()) > then) // the process goes on working after SIGTERM
    expect(await running.ended).toMatchObject({ code: 75 })
    expect(isThere(grandchild)).toBe(false)
  })

  test('ends a process that outlives the one that started it', async ({ key }) => {
    // The shell that started the grandchild ended at once. So the grandchild has no parent, but is still in the process
    // group.
    const { running, grandchild } = await job(key, { command: 'sh -c "sh worker.sh &"; sleep 600' })
    expect(await client().forceRelease(key)).toBe(true)
    expect(await running.ended).toMatchObject({ code: 75 })
    expect(isThere(grandchild)).toBe(false)
  })
})

/** Returns a script that records each signal of this name, reports when it is ready, and ends after the test. */
const noting = (name: NodeJS.Signals) =>
  [
    'const { appendFileSync: append, existsSync } = require("fs")',
    'const who = process.argv[1]',
    `process.on("${name}", () => append(who, "heard\\n"))`,
    'append(who + "-listens", "yes")',
    'setInterval(() => existsSync("enough") ? process.exit(9) : append("ticks", "tick\\n"), 50)',
  ].join('; ')

describe('a signal', () => {
  test.each(['SIGUSR1', 'SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    '%s is passed on to the whole group, once',
    async name => {
      const node = `exec '${process.execPath}' -e '${noting(name)}'`
      const command = `sh worker.sh & ${node} command`
      const { running, folder } = await job(freshKey(), { worker: `${node} grandchild`, command })
      // The signal would end a process that has no handler. So wait until each process has its handler.
      const listens = (who: string) => readFile(join(folder, `${who}-listens`), 'utf8').catch(() => '')
      await eventually(async () => (await listens('command')) && (await listens('grandchild')), STARTUP)
      const heard = (who: string) => readFile(join(folder, who), 'utf8').catch(() => '')
      running.child.kill(name)
      await eventually(async () => (await heard('command')) !== '' && (await heard('grandchild')) !== '')
      // If the signal were sent twice, the second one would have arrived by now.
      await sleep(300)
      await writeFile(join(folder, 'enough'), '')
      expect(await running.ended).toMatchObject({ code: 9, errors: '' })
      expect([await heard('command'), await heard('grandchild')]).toEqual(['heard\n', 'heard\n'])
    },
  )

  test('SIGKILL cannot be passed on: the command keeps working, and the lock is free when its lease has ended', async () => {
    const key = freshKey()
    const { running, grandchild, ticks } = await job(key, { args: ['--lease', '4s'] })
    running.child.kill('SIGKILL')
    await once(running.child, 'exit')
    expect(await client().tryLock(key)).toBeNull()
    expect(await client().tryLock(key, { timeout: 15_000 })).not.toBeNull()
    expect(isThere(grandchild)).toBe(true)
    const then = await ticks()
    await eventually(async () => (await ticks()) > then)
  })
})

test('processes that outlive the command are left alone, and the lock is free when the command has ended', async () => {
  const key = freshKey()
  const command = 'sh worker.sh >worker.log 2>&1 & until [ -e ticks ]; do sleep 0.05; done'
  const { running, grandchild, ticks } = await job(key, { command })
  expect(await running.ended).toEqual({ code: 0, output: '', errors: '' })
  expect(await client().isLocked(key)).toBe(false)
  expect(isThere(grandchild)).toBe(true)
  const then = await ticks()
  await eventually(async () => (await ticks()) > then)
})

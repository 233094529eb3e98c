/** What `baton run` does with what its command has started: all of it is ended with the lock, none of it is waited for. */
import { readFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { client, freshKey } from '../../kit/redis.ts'
import { emptyFolder } from '../../kit/temp.ts'
import { eventually, sleep } from '../../kit/time.ts'
import { type Running, STARTUP, start } from './baton.ts'

interface Job {
  readonly folder: string
  readonly running: Running
  /** The process that the command has started. */
  readonly grandchild: number
  /** How often it has said that it works. */
  ticks(): Promise<number>
}

const ticking = 'while :; do echo tick >>ticks; sleep 0.05; done'

/** `baton run` with a shell as its command, which starts another one that works on and on. */
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

/** Whether it runs. One that has ended may stay in the table until somebody takes notice. */
function isThere(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

describe('a lock that is lost', () => {
  test('I8: ends what the command has started, too, so that nothing works on beside the next holder', async () => {
    const key = freshKey()
    const { running, grandchild, ticks } = await job(key)
    expect(await client().forceRelease(key)).toBe(true)
    expect(await running.ended).toMatchObject({ code: 75 })
    expect(isThere(grandchild)).toBe(false)
    const then = await ticks()
    await sleep(300)
    expect(await ticks()).toBe(then)
  })

  test('what ignores SIGTERM is ended by SIGKILL after --grace, also when the command itself has ended before', async () => {
    const key = freshKey()
    const worker = `trap '' TERM; ${ticking}`
    const { running, grandchild, ticks } = await job(key, { worker, args: ['--grace', '1s'] })
    await client().forceRelease(key)
    const then = await ticks()
    await eventually(async () => (await ticks()) > then) // it goes on in spite of SIGTERM
    expect(await running.ended).toMatchObject({ code: 75 })
    expect(isThere(grandchild)).toBe(false)
  })

  test('whoever ends in the time of --grace is not killed', async () => {
    const key = freshKey()
    const worker = `trap 'sleep 0.5; echo tidy >tidied; exit' TERM; ${ticking}`
    const { running, folder } = await job(key, { worker })
    await client().forceRelease(key)
    expect(await running.ended).toMatchObject({ code: 75 })
    expect(await readFile(join(folder, 'tidied'), 'utf8')).toBe('tidy\n')
  })
})

test('a signal goes on to what the command has started, too', async () => {
  const worker = `trap 'echo heard >heard; exit' USR1; ${ticking}`
  const command = `trap 'wait; exit 9' USR1; sh worker.sh & wait`
  const { running, folder } = await job(freshKey(), { worker, command })
  running.child.kill('SIGUSR1')
  expect(await running.ended).toMatchObject({ code: 9 })
  expect(await readFile(join(folder, 'heard'), 'utf8')).toBe('heard\n')
})

test('what goes on behind the command is left alone, and the lock is free when the command has ended', async () => {
  const key = freshKey()
  const command = 'sh worker.sh >worker.log 2>&1 & until [ -e ticks ]; do sleep 0.05; done'
  const { running, grandchild, ticks } = await job(key, { command })
  expect(await running.ended).toEqual({ code: 0, output: '', errors: '' })
  expect(await client().isLocked(key)).toBe(false)
  expect(isThere(grandchild)).toBe(true)
  const then = await ticks()
  await eventually(async () => (await ticks()) > then)
})

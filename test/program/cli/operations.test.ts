/**
 * Tests that an operator needs no other tool than `baton`: a scheduled job runs on two machines, and hangs on one of
 * them.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { freshKey } from '../../kit/redis.ts'
import { emptyFolder } from '../../kit/temp.ts'
import { eventually } from '../../kit/time.ts'
import { baton, STARTUP, start } from './baton.ts'

test('guard a job on two machines, see who holds, find out why the other one waits, and take the lock away', async () => {
  const key = freshKey('nightly-report')
  const journal = join(await emptyFolder(), 'journal')
  const lines = async () => (await readFile(journal, 'utf8').catch(() => '')).split('\n').filter(Boolean)
  const note = (what: string) => `echo "${what} $BATON_KEY $BATON_FENCING_TOKEN" >>'${journal}'`
  const job = (label: string, script: string, ...options: string[]) =>
    start(['run', key, '--fair', '--label', label, ...options, '--', 'sh', '-c', script])

  // On the first machine the job hangs, and ignores SIGTERM.
  const hanging = job(
    'db-1 cron',
    `trap '${note('asked')}' TERM; ${note('begun')}; while :; do sleep 0.1; done`,
    '--grace',
    '1s',
  )
  await eventually(async () => (await lines()).length === 1, STARTUP)
  // On the second machine the job waits.
  const waiting = job('db-2 cron', `${note('begun')}; ${note('done')}`, '--verbose')
  await eventually(async () => (await baton('inspect', key)).output.includes('db-2 cron'), STARTUP)

  // The operator finds out who holds the lock, for how long, and who waits.
  const { output } = await baton('inspect', key)
  expect(output).toMatch(new RegExp(`^${key} is held by db-1 cron\\n`))
  expect(output).toMatch(/\n {2}held for {7}\d/)
  expect(output).toMatch(/\n1 {2}db-2 cron {2}/)
  const listed = (await baton('list', `${key}*`)).output
  expect(listed).toMatch(new RegExp(`\\n${key} +db-1 cron +\\S+ +\\S+ +1\\n`))

  // The operator finds out why a job with a time-out did not run.
  const impatient = await job('db-3 cron', note('wrong'), '--timeout', '200ms').ended
  expect(impatient.code).toBe(124)
  expect(impatient.errors).toMatch(
    /^baton: .* was not granted within \S+, held by db-1 cron for .*, at position 2 of the queue; the command was not run\n$/,
  )

  // The operator takes the lock away. The first job receives SIGTERM and then SIGKILL, and the second job begins.
  expect((await baton('release', '--force', '--yes', key)).output).toBe(`${key} is released\n`)
  const lost = await hanging.ended
  expect(lost.code).toBe(75)
  // The job's shell may report that the SIGTERM ended its `sleep`.
  expect(lost.errors).toMatch(/^baton: .*was lost.*; baton ends the command\n(Terminated\n)*$/)
  const won = await waiting.ended
  expect(won).toMatchObject({ code: 0, output: '' })
  // The second job has reported what it waited for.
  expect(won.errors).toMatch(
    /^baton: waiting for .*, held by db-1 cron for .*, at position 1 of the queue\nbaton: waited \S+( \S+)? for .*\n$/,
  )

  const journalled = (await lines()).map(line => line.split(' '))
  const of = (what: string) => journalled.filter(([word]) => word === what).map(([, name, token]) => ({ name, token }))
  expect(of('asked')).toHaveLength(1)
  expect(of('wrong')).toEqual([])
  const [first, second] = of('begun')
  expect(of('done')).toEqual([second])
  expect([first!.name, second!.name]).toEqual([key, key])
  expect(Number(second!.token)).toBeGreaterThan(Number(first!.token))
  expect((await baton('inspect', key)).output).toBe(`${key} is free\n`)
})

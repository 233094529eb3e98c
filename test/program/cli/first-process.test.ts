/**
 * Tests signals that arrive while `baton` connects. `baton` is the first process of a namespace here, as it is in a
 * container: to such a process, the system sends only signals for which it listens.
 */
import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import { printedBy } from '../../kit/printed.ts'
import { freshKey, test } from '../../kit/redis.ts'
import { emptyFolder } from '../../kit/temp.ts'
import { eventually } from '../../kit/time.ts'
import { STARTUP, silent, start } from './baton.ts'

const program = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url))
const space = ['--user', '--map-root-user', '--pid', '--fork', '--kill-child']

test.each([
  ['run', [freshKey(), '--', 'echo', 'runs']],
  ['top', []],
  ['ui', []],
  ['demo', []],
  ['list', []],
])('SIGTERM ends baton %s while it connects', async (command, args) => {
  const server = await silent()
  const url = ['--url', `redis://127.0.0.1:${server.port}`]
  const child = spawn('unshare', [...space, process.execPath, program, command, ...url, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const printed = printedBy(child)
  const ended = new Promise(resolve => child.once('close', resolve))
  await eventually(() => server.since !== undefined, STARTUP)
  const inner = await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')
  process.kill(Number(inner), 'SIGTERM')
  expect(await ended, printed.errors).toBe(143)
  expect(printed.output).not.toContain('runs')
})

test('SIGTERM while baton run connects: its metrics say so', async () => {
  const server = await silent()
  const file = join(await emptyFolder(), 'job.prom')
  const url = `redis://127.0.0.1:${server.port}`
  const running = start(['run', freshKey(), '--url', url, '--metrics', file, '--', 'echo', 'runs'])
  await eventually(() => server.since !== undefined, STARTUP)
  running.child.kill('SIGTERM')
  expect(await running.ended).toEqual({ code: 143, output: '', errors: '' })
  expect(await readFile(file, 'utf8')).toMatch(/^baton_run_exit_code\{.*\} 143$/m)
})

/**
 * Tests that several processes can append to one history file, and that SIGKILL of a process loses nothing that it has
 * recorded.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { emptyFolder } from '../kit/temp.ts'
import type { HistoryEvent } from './events.ts'
import { now, Recorder, readEvents } from './recorder.ts'

async function freshFile(): Promise<string> {
  return join(await emptyFolder(), 'history.jsonl')
}

async function all(file: string): Promise<HistoryEvent[]> {
  const events: HistoryEvent[] = []
  for await (const event of readEvents(file)) events.push(event)
  return events
}

test('an event that is read back has its recording time or the given time', async () => {
  const file = await freshFile()
  const recorder = new Recorder(file)
  const before = now()
  recorder.record('started', { worker: 'é"\n' })
  recorder.record('died', { worker: 'w' }, 5)
  recorder.close()
  const [first, second] = await all(file)
  expect(first).toMatchObject({ kind: 'started', worker: 'é"\n' })
  expect(first!.t).toBeGreaterThanOrEqual(before)
  expect(first!.t).toBeLessThanOrEqual(now())
  expect(second).toEqual({ t: 5, kind: 'died', worker: 'w' })
})

test('a line that is not an event causes an error that names the line', async () => {
  const file = await freshFile()
  appendFileSync(file, '{"t":1,"kind":"calm"}\n{"t":2,')
  await expect(all(file)).rejects.toThrow(/line 2 of .* is not an event: \{"t":2,/)
})

test('processes append to one history with a common clock until they are killed', async () => {
  const file = await freshFile()
  const writer = fileURLToPath(new URL('writer.ts', import.meta.url))
  const before = now()
  const children = ['a', 'b', 'c'].map(name => fork(writer, [file, name], { execArgv: ['--import', 'tsx'] }))
  await Promise.all(children.map(child => once(child, 'message')))
  for (const child of children) child.kill('SIGKILL')
  await Promise.all(children.map(child => once(child, 'exit')))
  const events = await all(file)
  expect(new Set(events.map(event => 'worker' in event && event.worker))).toEqual(new Set(['a', 'b', 'c']))
  expect(events.length).toBeGreaterThan(3_000)
  expect(events.every(({ t }) => t > before && t < now())).toBe(true)
})

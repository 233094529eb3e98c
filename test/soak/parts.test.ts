/** The parts of the soak that its verdict rests on: the plan follows from the seed, no frame is cut, the file tells the truth. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Lease } from '../../src/index.ts'
import type { HistoryEvent } from '../history/events.ts'
import { Recorder, readEvents } from '../history/recorder.ts'
import { choose } from './choices.ts'
import { areMessages } from './frames.ts'
import { planStorm } from './plan.ts'
import { processFaults } from './process-faults.ts'
import { Random } from './random.ts'
import { keyFaults, serverFaults } from './server-faults.ts'
import { Witnesses } from './witnesses.ts'

test('the faults and the choices of a run follow from its seed', () => {
  const plan = (seed: number) => planStorm(new Random(seed, 1), 6, 40)
  const choices = (stream: number) => Array.from({ length: 20 }, () => choose(new Random(7, stream), ['a', 'b', 'c']))
  expect(plan(7)).toEqual(plan(7))
  expect(plan(7)).not.toEqual(plan(8))
  expect(choices(1)).toEqual(choices(1))
  expect(choices(1)).not.toEqual(choices(2))
})

test('every kind of fault comes, and each in the order of time', () => {
  const random = new Random(1, 1)
  const plans = Array.from({ length: 100 }, () => planStorm(random, 6, 40))
  const names = new Set(plans.flat().map(({ name }) => name))
  expect([...names].sort()).toEqual([processFaults, serverFaults, keyFaults].flatMap(Object.keys).sort())
  for (const plan of plans) expect(plan.map(({ at }) => at)).toEqual(plan.map(({ at }) => at).sort((a, b) => a - b))
})

test('only whole messages count as messages', () => {
  const message = '*3\r\n$7\r\nmessage\r\n$5\r\ninbox\r\n$4\r\nfr\r\n\r\n'
  const subscribed = '*3\r\n$9\r\nsubscribe\r\n$5\r\ninbox\r\n:1\r\n'
  const are = (text: string) => areMessages(Buffer.from(text))
  expect(are(message)).toBe(true)
  expect(are(message + message)).toBe(true)
  expect(are(message + subscribed)).toBe(false)
  expect(are(subscribed)).toBe(false)
  for (let end = 0; end < message.length; end++) expect(are(message.slice(0, end))).toBe(false)
  expect(are(message + message.slice(0, 20))).toBe(false)
})

test('the file is for one at a time, and is taken over when the time of the one inside is over', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'baton-witness-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const history = join(folder, 'history.jsonl')
  const recorder = new Recorder(history)
  onTestFinished(() => recorder.close())
  const witnesses = new Witnesses('w', folder, undefined as never, recorder)
  const ends = new AbortController()
  const lease = (id: string, ms: number, { signal } = ends) =>
    ({ id, owner: id, key: 'k', held: ms > 0, remaining: () => ms, signal }) as Lease
  const met = async () => {
    const list: HistoryEvent[] = []
    for await (const event of readEvents(history)) list.push(event)
    return list
  }

  const inside = lease('a', 60_000)
  expect(witnesses.enter(inside)).toBe(true)
  expect(witnesses.enter(lease('b', 0))).toBe(false)
  expect(await met()).toEqual([])
  expect(witnesses.enter(lease('b', 60_000))).toBe(false)
  expect(await met()).toMatchObject([{ kind: 'met', id: 'b', other: 'a', key: 'k' }])
  witnesses.leave(lease('b', 60_000))
  expect(existsSync(join(folder, 'k'))).toBe(true)
  witnesses.leave(inside)
  expect(existsSync(join(folder, 'k'))).toBe(false)

  const loss = new AbortController()
  expect(witnesses.enter(lease('lost', 60_000, loss))).toBe(true)
  loss.abort()
  expect(existsSync(join(folder, 'k'))).toBe(false)

  expect(witnesses.enter(lease('c', 0.001))).toBe(true)
  expect(witnesses.enter(lease('d', 60_000))).toBe(true)
  expect(JSON.parse(readFileSync(join(folder, 'k'), 'utf8'))).toMatchObject({ id: 'd' })
  expect(await met()).toHaveLength(1)
})

/**
 * Tests the parts of the soak on which its verdict depends: the plan follows from the seed and is complete, streams are
 * split into whole frames, and the witnesses (witnesses.ts) report exactly what the lock does not allow.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Lease } from '../../../src/index.ts'
import { Frames, messageOf } from '../../kit/frames.ts'
import { Random } from '../../kit/random.ts'
import { freshKey, plainRedis } from '../../kit/redis.ts'
import { emptyFolder } from '../../kit/temp.ts'
import type { HistoryEvent } from '../events.ts'
import { Recorder, readEvents } from '../recorder.ts'
import type { Wants } from '../wants.ts'
import { readRegister, Witnesses, writeFenced } from '../witnesses.ts'
import { choose } from './choices.ts'
import { keyFaults } from './key-faults.ts'
import { Planner } from './plan.ts'
import { processFaults } from './process-faults.ts'
import { serverFaults } from './server-faults.ts'
import { STORM, TIMES } from './terms.ts'

const planner = (seed: number) => new Planner(new Random(seed, 1), 6, 40)

test('the faults and the choices of a run follow from its seed', () => {
  const plan = (seed: number) => planner(seed).storm(STORM)
  const choices = (stream: number) =>
    Array.from({ length: 20 }, () => choose(new Random(7, stream), { keys: ['a', 'b', 'c'], times: TIMES }))
  expect(plan(7)).toEqual(plan(7))
  expect(plan(7)).not.toEqual(plan(8))
  expect(choices(1)).toEqual(choices(1))
  expect(choices(1)).not.toEqual(choices(2))
})

// A run of one minute has two storms, so every kind of fault comes even in so short a run.
test('every kind of fault comes in the first two storms and again later; each storm is in the order of time', () => {
  const kinds = [processFaults, serverFaults, keyFaults].flatMap(Object.keys).sort()
  for (let seed = 0; seed < 200; seed++) {
    const one = planner(seed)
    const plans = [one.storm(STORM), one.storm(STORM)]
    expect([...new Set(plans.flat().map(({ name }) => name))].sort()).toEqual(kinds)
    for (const plan of plans) expect(plan.map(({ at }) => at)).toEqual(plan.map(({ at }) => at).sort((a, b) => a - b))
  }
  const one = planner(1)
  const later = Array.from({ length: 100 }, () => one.storm(STORM)).slice(2)
  expect([...new Set(later.flat().map(({ name }) => name))].sort()).toEqual(kinds)
})

test('frames are found whole, wherever the stream is divided, and messages are distinguished from replies', () => {
  const message = '*3\r\n$7\r\nmessage\r\n$5\r\ninbox\r\n$4\r\nfr\r\n\r\n'
  const subscribed = '*3\r\n$9\r\nsubscribe\r\n$5\r\ninbox\r\n:1\r\n'
  const stream = Buffer.from(message + subscribed + message)
  for (let cut = 0; cut <= stream.length; cut++) {
    const frames = new Frames()
    const found = [...frames.take(stream.subarray(0, cut)), ...frames.take(stream.subarray(cut))]
    expect(found.map(String)).toEqual([message, subscribed, message])
    expect(found.map(messageOf)).toEqual(['fr\r\n', undefined, 'fr\r\n'])
  }
})

test('the files admit the same number of holders as the lock, each until its deadline', async () => {
  const folder = await emptyFolder()
  const history = join(folder, 'history.jsonl')
  const recorder = new Recorder(history)
  onTestFinished(() => recorder.close())
  const witnesses = new Witnesses('w', folder, undefined as never, recorder)
  const ends = new AbortController()
  const lease = (id: string, ms: number, { key = 'k', owner = id, signal = ends.signal } = {}) =>
    ({ id, owner, key, held: ms > 0, remaining: () => ms, signal }) as Lease
  const met = async () => {
    const list: HistoryEvent[] = []
    for await (const event of readEvents(history)) list.push(event)
    return list
  }

  expect(witnesses.enter(lease('a', 60_000))).toBe(true)
  expect(witnesses.enter(lease('b', 0))).toBe(false)
  expect(await met()).toEqual([])
  expect(witnesses.enter(lease('a2', 60_000, { owner: 'a' }))).toBe(true)
  expect(witnesses.enter(lease('b', 60_000))).toBe(false)
  expect(await met()).toMatchObject([{ kind: 'met', id: 'b', key: 'k' }])
  expect(new Set((await met()).flatMap(event => (event.kind === 'met' ? event.others : [])))).toEqual(
    new Set(['a', 'a2']),
  )
  for (const id of ['a', 'a2', 'b']) witnesses.leave(lease(id, 60_000))
  expect(readdirSync(join(folder, 'k'))).toEqual([])

  const loss = new AbortController()
  expect(witnesses.enter(lease('lost', 60_000, { signal: loss.signal }))).toBe(true)
  loss.abort()
  expect(readdirSync(join(folder, 'k'))).toEqual([])

  expect(witnesses.enter(lease('c', 0.001))).toBe(true)
  expect(witnesses.enter(lease('d', 60_000))).toBe(true)
  expect(readdirSync(join(folder, 'k'))).toEqual(['d'])
  expect(await met()).toHaveLength(1)

  const [one, two] = [
    (id: string) => lease(id, 60_000, { key: 's', owner: 'o' }),
    (id: string) => lease(id, 60_000, { key: 'r' }),
  ]
  expect(witnesses.enter(one('a'), [2, 3])).toBe(true)
  expect(witnesses.enter(one('b'), [1, 3])).toBe(true)
  expect(witnesses.enter(one('c'), [1, 3])).toBe(false)
  expect(witnesses.enter(two('a'), 'read')).toBe(true)
  expect(witnesses.enter(two('b'), 'read')).toBe(true)
  expect(witnesses.enter(two('c'), 'write')).toBe(false)
  expect(await met()).toHaveLength(3)
})

test('the register refuses an older token, even a reader’s, and only records the writes of semaphore holders', async () => {
  const folder = await emptyFolder()
  const recorder = new Recorder(join(folder, 'history.jsonl'))
  onTestFinished(() => recorder.close())
  const redis = plainRedis()
  const key = freshKey('register')
  const write = (id: string, fencingToken: number, wants?: Wants) =>
    writeFenced(redis, { key, id, fencingToken } as Lease, wants)
  expect(await write('a', 5)).toBe(0)
  expect(await write('b', 4)).toBe(5)
  expect(await write('c', 4, 'read')).toBe(5)
  expect(await write('d', 6, 'read')).toBe(0)
  expect(await write('e', 5, 'write')).toBe(0)
  expect(await readRegister(redis, key)).toEqual([
    [5, 'a'],
    [5, 'e'],
  ])
  expect(await write('f', 3, [1, 2])).toBe(0)
  expect(await readRegister(redis, key)).toContainEqual([3, 'f'])
})

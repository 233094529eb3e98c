/**
 * Faults of one process, and of its connections to the server. Each fault begins, lasts for a while, and is then
 * healed.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { Deed, Where } from '../../kit/frame-proxy.ts'
import { now } from '../recorder.ts'
import type { Fault } from './fault.ts'
import type { OneWay } from './one-way.ts'
import type { ProcessFault } from './plan.ts'
import type { Post } from './post.ts'
import { OUTPUT_LIMIT } from './stage.ts'
import { workerFaults } from './worker-faults.ts'

/**
 * The first words of all kinds of message. A fault of messages affects only data that begins with one of these words,
 * and not the confirmations of subscriptions, which arrive on the same connection.
 */
const messages = ['handoff', 'expiry', 'lost', 'free', 'beat']
const scripts = ['acquire', 'release', 'tend', 'leave', 'renew']

export const processFaults: Readonly<Record<ProcessFault, Fault<[post: Post<OneWay>]>>> = {
  ...workerFaults,
  cut: { reach: 'worker', run: async (_, __, { ways: { proxy } }) => proxy.cut() },
  refuse: {
    reach: 'worker',
    async run(_, { duration }, { ways: { proxy } }) {
      proxy.refuse()
      proxy.cut()
      await sleep(duration)
      proxy.heal()
    },
  },
  'half-open up': halfOpen({ direction: 'up' }),
  'half-open down': halfOpen({ direction: 'down' }),
  partition: halfOpen({}),
  /** Loses the replies of requests that the server executes. */
  'lose replies': halfOpen({ direction: 'down' }),
  /** Delivers requests only after their sender has been disconnected, has repeated them, or has given up. */
  'late requests': {
    reach: 'worker',
    run: (_, { duration, dice }, post) =>
      ruled(post, duration, [
        [{ direction: 'up', name: scripts[dice % scripts.length]!, times: 1 + (dice % 3) }, 'sever'],
      ]),
  },
  hold: {
    reach: 'worker',
    run: (_, { duration, dice }, post) =>
      ruled(post, duration, [[{ direction: dice % 2 === 0 ? 'up' : 'down' }, 'hold']]),
  },
  delay: {
    reach: 'worker',
    run: (_, { duration, dice }, post) => ruled(post, duration, [[{}, { delay: dice % 150 }]]),
  },
  'drop messages': { reach: 'worker', run: (_, { duration }, post) => ruled(post, duration, toMessages('drop')) },
  'double messages': { reach: 'nothing', run: (_, { duration }, post) => ruled(post, duration, toMessages('twice')) },
  'late messages': { reach: 'worker', run: (_, { duration }, post) => ruled(post, duration, toMessages('hold')) },
  /** Delivers messages before the replies to the requests that caused them. */
  'early messages': {
    reach: 'worker',
    run: (_, { duration }, post) => ruled(post, duration, [[{ direction: 'down', name: 'acquire' }, 'hold']]),
  },
  'output buffer': { reach: 'worker', run: ({ second }, { duration }, post) => pileUp(second, post, duration) },
}

/** Stops reading from the server, until the server disconnects the slow subscriber. */
async function pileUp(redis: Redis, { ways }: Post<OneWay>, duration: number): Promise<void> {
  const end = now() + Math.max(duration, 500)
  // The process's connection may be down at the moment, so wait for it.
  while (ways.inbox === undefined && now() < end) await sleep(10)
  const { inbox } = ways
  if (inbox === undefined) return
  ways.proxy.stopReading('messages')
  for (let heard = 1; heard > 0 && now() < end; await sleep(5)) {
    const flood = redis.pipeline()
    for (let i = 0; i < 10; i++) flood.publish(inbox, 'x'.repeat(OUTPUT_LIMIT / 20))
    const counts = (await flood.exec()) ?? []
    // If another fault hits the server at this time, the reply is an error and has no number of receivers. Then the
    // loop continues.
    heard = Number(counts.at(-1)?.[1] ?? 1)
  }
  ways.proxy.readOn()
}

function toMessages(deed: Deed): [Where, Deed][] {
  return messages.map(name => [{ direction: 'down', kind: 'messages', name }, deed])
}

async function ruled({ ways }: Post<OneWay>, duration: number, rules: [Where, Deed][]): Promise<void> {
  for (const [where, deed] of rules) ways.proxy.rule(where, deed)
  await sleep(duration)
  ways.proxy.heal()
}

/**
 * For a while, drops the frames that `where` names. Then cuts the connection before any frame gets through again,
 * because a real connection that has lost bytes never becomes usable again.
 */
function halfOpen(where: Where): Fault<[post: Post<OneWay>]> {
  return {
    reach: 'worker',
    async run(_, { duration }, { ways: { proxy } }) {
      proxy.rule(where, 'drop')
      await sleep(duration)
      proxy.cut()
      proxy.heal()
    },
  }
}

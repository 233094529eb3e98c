/**
 * Faults of the line between one process and one server. `lineFaults` are faults of any connection. `messageFaults`
 * choose certain requests or messages, and need a process whose only line this is.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Deed, Where } from '../../kit/frame-proxy.ts'
import { now } from '../recorder.ts'
import type { Choices, Fault, Faults } from './fault.ts'
import type { Line } from './line.ts'
import { OUTPUT_LIMIT, type Stage } from './stage.ts'

/** The delay on a slow line to one of several servers, in ms. Many calls have a shorter timeout. */
const SLOW = 500
/**
 * The first words of all kinds of message. A fault of messages affects only data that begins with one of these words,
 * and not the confirmations of subscriptions, which arrive on the same connection.
 */
const messages = ['handoff', 'expiry', 'lost', 'free', 'beat']
const scripts = ['acquire', 'release', 'tend', 'leave', 'renew']

export const lineFaults = {
  cut: { weight: 8, ofMajority: true, run: async (_, { proxy }) => proxy.cut() },
  refuse: {
    weight: 5,
    longest: 5_000,
    async run(_, { proxy }, { duration }) {
      proxy.refuse()
      proxy.cut()
      await sleep(duration)
      proxy.heal()
    },
  },
  'half-open up': { weight: 5, longest: 4_000, run: halfOpen({ direction: 'up' }) },
  'half-open down': { weight: 6, longest: 4_000, run: halfOpen({ direction: 'down' }) },
  partition: { weight: 5, longest: 4_000, ofMajority: true, run: halfOpen({}) },
  /**
   * Holds back the requests or the replies of this line. They arrive after the fault, when the sender of the requests
   * may have given up.
   */
  hold: {
    weight: 6,
    longest: 2_000,
    ofMajority: true,
    run: ruled(({ dice }) => [[{ direction: dice % 2 === 0 ? 'up' : 'down' }, 'hold']]),
  },
  delay: {
    weight: 6,
    longest: 3_000,
    run: ruled(({ dice }, { size }) => [[{}, { delay: size > 1 ? SLOW : dice % 150 }]]),
  },
} satisfies Faults<Line>

export const messageFaults: Faults<Line> = {
  /** Loses the replies of requests that the server executes. */
  'lose replies': { weight: 6, longest: 100, run: halfOpen({ direction: 'down' }) },
  /** Delivers requests only after their sender has been disconnected, has repeated them, or has given up. */
  'late requests': {
    weight: 6,
    longest: 2_000,
    run: ruled(({ dice }) => [
      [{ direction: 'up', name: scripts[dice % scripts.length]!, times: 1 + (dice % 3) }, 'sever'],
    ]),
  },
  'drop messages': { weight: 6, longest: 3_000, run: ruled(() => toMessages('drop')) },
  'double messages': { weight: 5, longest: 3_000, reach: 'nothing', run: ruled(() => toMessages('twice')) },
  'late messages': { weight: 5, longest: 2_500, run: ruled(() => toMessages('hold')) },
  /** Delivers messages before the replies to the requests that caused them. */
  'early messages': {
    weight: 5,
    longest: 1_000,
    run: ruled(() => [[{ direction: 'down', name: 'acquire' }, 'hold']]),
  },
  'output buffer': { weight: 3, longest: 3_000, run: pileUp },
}

/** Stops reading from the server, until the server disconnects the slow subscriber. */
async function pileUp({ server }: Stage, line: Line, { duration }: Choices): Promise<void> {
  const end = now() + Math.max(duration, 500)
  // The process's connection may be down at the moment, so wait for it.
  while (line.inbox === undefined && now() < end) await sleep(10)
  const { inbox } = line
  if (inbox === undefined) return
  const redis = server.connect()
  line.proxy.stopReading('messages')
  for (let heard = 1; heard > 0 && now() < end; await sleep(5)) {
    const flood = redis.pipeline()
    for (let i = 0; i < 10; i++) flood.publish(inbox, 'x'.repeat(OUTPUT_LIMIT / 20))
    const counts = (await flood.exec()) ?? []
    // If another fault hits the server at this time, the reply is an error and has no number of receivers. Then the
    // loop continues.
    heard = Number(counts.at(-1)?.[1] ?? 1)
  }
  redis.disconnect()
  line.proxy.readOn()
}

function toMessages(deed: Deed): [Where, Deed][] {
  return messages.map(name => [{ direction: 'down', kind: 'messages', name }, deed])
}

function ruled(rules: (choices: Choices, stage: Stage) => [Where, Deed][]): Fault<Line>['run'] {
  return async (stage, { proxy }, choices) => {
    for (const [where, deed] of rules(choices, stage)) proxy.rule(where, deed)
    await sleep(choices.duration)
    proxy.heal()
  }
}

/**
 * For a while, drops the frames that `where` names. Then cuts the connection before any frame gets through again,
 * because a real connection that has lost bytes never becomes usable again.
 */
function halfOpen(where: Where): Fault<Line>['run'] {
  return async (_, { proxy }, { duration }) => {
    proxy.rule(where, 'drop')
    await sleep(duration)
    proxy.cut()
    proxy.heal()
  }
}

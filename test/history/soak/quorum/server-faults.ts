/**
 * Faults of a server of a quorum. Each fault begins, lasts for a while, and is then healed. A fault that takes holds
 * away records the holds and the time in the event `taken`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { now } from '../../recorder.ts'
import type { Choices } from '../fault.ts'
import { lostBy } from './known.ts'
import type { ClockFault, LineFault, ServerFault } from './plan.ts'
import type { QuorumServer } from './server.ts'
import type { QuorumStage } from './stage.ts'
import { majorityOf, STANDING } from './terms.ts'

/** One server's part in a blow. `all` are the servers that the blow affects at the same time, including this one. */
export interface Blow extends Choices {
  readonly server: number
  readonly all: readonly number[]
}

type Run = (stage: QuorumStage, blow: Blow, server: QuorumServer) => Promise<void>

export const serverFaults: Readonly<Record<ServerFault, Run>> = {
  async restart(_, { duration }, server) {
    await server.kill()
    await sleep(duration)
    await server.comeBack()
  },
  'restart empty': async (stage, { duration, all }, server) => {
    await forgetting(stage, all, () => server.kill())
    await sleep(duration)
    await server.comeBackEmpty(stage.emptied)
    await sleep(STANDING)
    await server.persist()
  },
  async stop(_, { duration }, server) {
    server.stop()
    await sleep(duration)
    server.goOn()
  },
  async 'client kill'(_, { dice }, { admin }) {
    const types = [['normal'], ['pubsub'], ['normal', 'pubsub']][dice % 3] as string[]
    await Promise.all(types.map(type => admin.call('CLIENT', 'KILL', 'TYPE', type)))
  },
  'cut off': onAllLines('partition'),
  'cut off up': onAllLines('half-open up'),
  'cut off down': onAllLines('half-open down'),
  slow: onAllLines('delay'),
  late: onAllLines('hold'),
}

/** Time between two steps of clocks, in ms. In this time, renewals restore holds on servers that have lost them. */
const BETWEEN_STEPS = 700

/**
 * Steps of servers' clocks, by up to a minute, one server at a time. The fastest clock determines the tokens, so a
 * token may be ahead of the other clocks. I2 is promised for such a token only while a majority of the servers knows
 * the token, or after the clocks of all servers have passed it. So no fault may delete data before all clocks agree
 * again.
 */
export const clockFaults: Readonly<Record<ClockFault, Run>> = {
  'clock ahead': async (stage, { duration, dice }, server) => {
    const size = sizeOf(dice)
    await stepAhead(stage, server, size)
    await sleep(duration)
    for (const other of stage.servers) {
      if (other === server) continue
      await stepAhead(stage, other, size)
      await sleep(BETWEEN_STEPS)
    }
  },
  'clock back': async (stage, { duration, dice }, server) => {
    const size = sizeOf(dice)
    await step(stage, server, -size)
    await sleep(duration)
    await stepAhead(stage, server, size)
  },
}

const LONGEST = 60_000
const SHORTEST = 50

function sizeOf(dice: number): number {
  return SHORTEST + (dice % (LONGEST - SHORTEST))
}

/**
 * Steps a server's clock forward, past the ends of all leases on this server. This affects a hold in one of two ways:
 * - If the other servers that know the hold are a majority of all servers, no other caller gets the lock. But if the
 *   holder depends on the vote of this server, it may be notified of a loss early.
 * - If the other servers that know the hold are no majority, another caller may get the lock.
 */
async function stepAhead(stage: QuorumStage, server: QuorumServer, size: number): Promise<void> {
  const from = now()
  const lost = await lostBy(stage.servers, [server.number], stage.keys, () => step(stage, server, size), stage.size)
  for (const key of lost.inDoubt) stage.recorder.record('taken', { key, from, how: 'clock' })
  for (const key of lost.voted) stage.recorder.record('taken', { key, from, how: 'clock', closed: true })
}

/** Steps the clock. Reads the clock right before and after, so that the history shows when the step happened. */
async function step(stage: QuorumStage, server: QuorumServer, ms: number): Promise<void> {
  const { clock, admin } = server
  stage.readClock(server)
  clock.set(clock.offset + ms)
  stage.readClock(server)
  const [seconds] = await admin.time()
  const off = Number(seconds) * 1_000 - clock.now()
  if (Math.abs(off) > 5_000) throw new Error(`the clock of server ${server.number} is off by ${off} ms`)
}

/**
 * Makes the servers with the numbers `lost` forget their data. Records which holds may be taken away by this. The votes
 * of these servers do not count until every earlier hold has ended, so no other caller gets a lock early. But if less
 * than a majority of the servers still knows a hold, its holder may be notified of a loss before its deadline.
 */
async function forgetting(stage: QuorumStage, lost: readonly number[], forget: () => Promise<void>): Promise<void> {
  const { servers, size, keys, recorder } = stage
  const from = now()
  const fields = { from, how: 'restart', closed: true } as const
  if (lost.length >= majorityOf(size)) {
    await forget()
    recorder.record('taken', fields)
  } else {
    const { inDoubt, voted } = await lostBy(servers, lost, keys, forget, size)
    for (const key of [...inDoubt, ...voted]) recorder.record('taken', { key, ...fields })
  }
}

function onAllLines(name: LineFault): Run {
  return async ({ posts }, { server, duration, dice }) => {
    await Promise.all(posts.map(({ ways }) => ways.lines[server]!.break(name, { duration, dice })))
  }
}

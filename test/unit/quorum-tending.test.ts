/** Tests the heartbeat of waiters on a quorum, with fake servers that answer when the test says so. */
import { expect, test } from 'vitest'
import type { Claim, HeartbeatReply } from '../../src/kind.ts'
import { member, quorumOver } from './ballots.ts'
import { FakeClock } from './fake-clock.ts'
import { now } from './promises.ts'

const claim: Claim = { key: 'k', id: 'id', owner: 'id', label: '', lease: 30_000, headStart: 0 }

/**
 * A fake server that refuses every claim, and always reports third place in the queue. It answers a leave only when the
 * test calls `left` or `refusedToLeave`.
 */
class FakeServer {
  looks = 0
  left!: () => void
  refusedToLeave!: (error: Error) => void
  readonly #clock: FakeClock

  constructor(clock: FakeClock) {
    this.#clock = clock
  }

  get place() {
    const tended = (): HeartbeatReply => {
      this.looks += 1
      const sent = this.#clock.now()
      return { sent, ttl: 20_000, holder: { label: 'holder', since: sent }, clock: 0, waiters: [3] }
    }
    return {
      member,
      kind: {
        tend: async () => tended(),
        leave: () =>
          new Promise<void>((resolve, reject) => {
            this.left = resolve
            this.refusedToLeave = reject
          }),
      },
      vote: async () => ({
        granted: false,
        sent: 0,
        ttl: 20_000,
        position: 3,
        ticket: '1',
        holder: undefined,
        clock: 0,
      }),
    }
  }
}

/** Queues a waiter on all servers, and then asks all of them to remove it. */
async function takenBack() {
  const clock = new FakeClock()
  const servers = [1, 2, 3].map(() => new FakeServer(clock))
  const { ballots, kind } = quorumOver(
    servers.map(({ place }) => place),
    clock,
  )
  const ballot = ballots.of(claim)
  for (const i of servers.keys()) ballots.ask(ballot.seats[i]!, 'queue', 0)
  await clock.advance(0)
  const ended = ballots.end(ballot)
  ended.catch(() => {})
  return { clock, servers, tended: kind.tend(claim.key, [{ claim, ticket: '1' }]) }
}

test('while a waiter is being taken back, its heartbeat waits until a majority of servers has done that, and asks these', async () => {
  const { servers, tended } = await takenBack()
  expect(await now(tended)).toBe('pending')
  for (const server of servers.slice(0, 2)) server.left()
  expect(await now(tended)).toMatchObject({ ttl: 20_000, waiters: [3] })
  expect(servers.map(({ looks }) => looks)).toEqual([1, 1, 0])
})

test('the heartbeat of a waiter fails if a majority of servers refuses to take the waiter back', async () => {
  const { clock, servers, tended } = await takenBack()
  tended.catch(() => {})
  for (const server of servers) server.refusedToLeave(new Error('refused'))
  await clock.advance(100)
  await expect(tended).rejects.toThrow("no majority of the quorum's servers gave the same answer")
})

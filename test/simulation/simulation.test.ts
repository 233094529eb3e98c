/**
 * Seeded histories of the client's code and of the scripts of lua/, over a Redis, a network and a time that are simulated
 * (world.ts).
 *
 *   npx vitest run test/simulation                     the seeds that are always run, then new ones
 *   BATON_SEED=123 npx vitest run test/simulation      one history, with its whole trace in case of a failure
 *   BATON_SECONDS=600 npx vitest run test/simulation   new seeds for longer
 *   BATON_KIND=readWrite with BATON_SEED               the history of that seed, of read-write locks
 *
 * Broken on purpose, each of these was seen to fail, most within a second, the rarest within half a minute:
 *   src/wait/acquire.ts    a grant message believed without `newer` (I1); asking before the inbox is heard (I3); no
 *                          second attempt after the unlock channel is heard (I4); deaf to what other calls of an owner enter by (I4)
 *   src/local/local-lock.ts  no `leave` behind a caller that has given up (I7); `takeBack` empty (I7), or without looking
 *                          for the lease first (I1)
 *   src/wait/heartbeat.ts  no timer (I4)
 *   src/local/local-locks.ts  `waiter` blind until the waiter's request is answered (I1)
 *   src/wait/outage.ts     no end of patience (I6)
 *   src/lease/renewal.ts   the deadline ignored (I8); siblings with another token prolonged (I1); `remains` not told (I7)
 *   src/clock.ts           no margin in `surelyUntil` (I1)
 *   src/kinds/mutex/mutex.ts     a renewal counted from 5 ms after it was sent (I1)
 *   src/local/line.ts      no attempt after `TURN` (I4)
 *   src/local/run.ts       a token twice (I2); nothing of a block counted as used (I2); a run of 40 ms (I3)
 *   src/local/tenancy.ts   handed on with less than half of the lease left, or with a new deadline (I1); after Redis has
 *                          said that fair waiters are queued (I3); while the owner holds it twice (I8); by an owner with a name
 *                          (I1); a record that a nested call does not wait for (re-entry)
 *   src/lease/holds.ts     the release of another id than that of the run's hold (I5, I7); the line not told of an own
 *                          release (I4)
 *   src/local/local-lock.ts  an heir while a fair waiter of the same client is queued (I3)
 *   lua/mutex/acquire.lua        a lease that counts as lapsed 20 ms early (I1); a re-entry that is not recorded (I2)
 *   lua/shared/clock.lua  a clock that does not move on (I2)
 *   lua/shared/grant.lua  a block that is promised and not reserved (I2)
 *   lua/shared/promote.lua  the last waiter instead of the first (I3)
 *   lua/shared/drop.lua   a release of any id (I1); one that ends the owner's other holds (I1)
 *   lua/shared/life.lua   a key that expires before its lease (I1)
 *   lua/mutex/tend.lua           another ticket than the waiter had (I3); an error in the middle of the script
 *   lua/mutex/release.lua        nobody told that the lock is free (I4); a hold that stays (I5)
 *   lua/mutex/leave.lua          a place in the queue that stays (I3), or a hold (I7)
 *   lua/mutex/renew.lua          a longer lease in the reply than in the lock (I1)
 *   lua/mutex/pass.lua           a token that nobody has (I2)
 *   lua/permits/acquire.lua      a writer that is let in beside readers (I1)
 *   lua/permits/read-write/choose.lua  readers that are let in beside a writer that waits (I3)
 *   lua/permits/read-write/re-enter.lua  nobody enters again, or with a token of its own, or a reader to write; a request to write, of
 *                          an owner that reads, that waits, or that is refused although it had waited before (re-entry)
 *   lua/permits/read-write/own.lua  an owner's other waiters not told that it holds (I4)
 *   lua/permits/read-write/disown.lua  an owner that is noted after its end, or no longer noted after the end of one hold (re-entry)
 */
import { expect, test } from 'vitest'
import type { SimulatedKind } from './plan.ts'
import { type Result, runAll, traceOf } from './run.ts'

const { BATON_SEED, BATON_SECONDS, BATON_KIND } = process.env
const one = BATON_SEED === undefined ? undefined : Number(BATON_SEED)
const SECONDS = Number(BATON_SECONDS ?? 15)
const ALWAYS = 500
const ALWAYS_PERMITS = 150
/** How much of a trace is shown. */
const SHOWN = 60

function* from(first: number, last = Number.POSITIVE_INFINITY): Generator<number> {
  for (let seed = first; seed <= last; seed++) yield seed
}

function report(kind: SimulatedKind, result: Result): void {
  const { histories, events, handedOn, reentered, deadlocks, seconds } = result
  const rate = (count: number) => `${count} (${Math.round(count / seconds)} per second)`
  const seen: Record<SimulatedKind, string> = {
    mutex: `; ${handedOn} leases were handed on within a client`,
    semaphore: '',
    readWrite: `; ${reentered} times an owner entered again, and ${deadlocks} times it would have waited for itself`,
  }
  console.log(
    `simulation, ${kind}: ${rate(histories)} histories, ${rate(events)} interleaved events, in ${seconds.toFixed(1)} s` +
      seen[kind],
  )
}

async function explain(kind: SimulatedKind, seed: number, shown = SHOWN): Promise<string> {
  const { lines, failure } = await traceOf(kind, seed)
  return `${failure}\n\nBATON_KIND=${kind} BATON_SEED=${seed} npx vitest run test/simulation\n\n${lines.slice(-shown).join('\n')}\n`
}

async function expectNoFailure(kind: SimulatedKind, result: Result): Promise<void> {
  report(kind, result)
  if (result.failed) throw new Error(await explain(kind, result.failed.seed))
  expect(result.histories).toBeGreaterThan(0)
}

// With BATON_SEED, that history alone; without it, everything else. Neither counts as a test that was skipped.
if (one !== undefined) {
  test('the history of BATON_SEED', async () => {
    const kind = (BATON_KIND ?? 'mutex') as SimulatedKind
    const { lines, failure } = await traceOf(kind, one)
    if (failure !== undefined) throw new Error(await explain(kind, one, lines.length))
  })
} else {
  test('I1 to I8 hold in the histories of the seeds that are always run', { timeout: 120_000 }, async () => {
    const result = await runAll('mutex', from(1, ALWAYS))
    await expectNoFailure('mutex', result)
    // It would be easy to check nothing of this by accident.
    expect(result.handedOn).toBeGreaterThan(ALWAYS / 2)
  })

  test('I1 to I8 hold in the histories of new seeds', { timeout: (SECONDS + 60) * 1_000 }, async () => {
    const first = 1_000_000 + (Date.now() % 1_000_000_000)
    await expectNoFailure('mutex', await runAll('mutex', from(first), SECONDS))
  })

  test.each(['semaphore', 'readWrite'] as const)(
    'I1 to I8 hold of a %s, too',
    { timeout: (SECONDS + 120) * 1_000 },
    async kind => {
      const result = await runAll(kind, from(1, ALWAYS_PERMITS))
      await expectNoFailure(kind, result)
      if (kind === 'readWrite') {
        expect(result.reentered).toBeGreaterThan(ALWAYS_PERMITS)
        expect(result.deadlocks).toBeGreaterThan(ALWAYS_PERMITS / 4)
      }
      const first = 1_000_000 + (Date.now() % 1_000_000_000)
      await expectNoFailure(kind, await runAll(kind, from(first), SECONDS / 3))
    },
  )

  test('the same seed is the same history, in any company', { timeout: 60_000 }, async () => {
    for (const seed of from(1, 20)) {
      const { lines } = await traceOf('mutex', seed)
      expect((await traceOf('mutex', seed)).lines).toEqual(lines)
    }
    const [alone, together] = [await eventsOf(7), await runAll('mutex', from(1, 40))]
    let sum = 0
    for (const seed of from(1, 40)) sum += seed === 7 ? alone : await eventsOf(seed)
    expect(together.events).toBe(sum)
  })
}

async function eventsOf(seed: number): Promise<number> {
  return (await runAll('mutex', from(seed, seed))).events
}

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { type ClientOptions, type Lease, type Lock, LockClient, type LockOptions } from '../../src/index.ts'
import { asksFair, type Contender, type Rival, type RivalClient, type Setting } from '../contract.ts'
import { allBut } from '../scenarios.ts'

const oneServer = 'it has one server, and that is not frozen'
const ours = { kind: 'baton', package: undefined, runtime: 'node', missing: async () => undefined } as const

export const batonFair: Rival = {
  ...ours,
  name: 'baton-fair',
  fair: true,
  locks: ['mutex', 'semaphore', 'readWrite'],
  note: 'redis-baton, fair: waiters stand in a queue in Redis, one LockClient a process.',
  open: async setting => open(setting, { fair: true }),
}

export const batonUnfair: Rival = {
  ...ours,
  name: 'baton-unfair',
  fair: false,
  locks: ['mutex', 'semaphore', 'readWrite'],
  note: 'redis-baton, unfair for ever (fairAfter: Infinity): waiters are woken by messages, one LockClient a process.',
  // Infinity, because with the default a caller that waits for a second joins the queue, and that is the other rival.
  open: async setting => open(setting, { fairAfter: Number.POSITIVE_INFINITY }),
}

export const batonMixed: Rival = {
  ...ours,
  name: 'baton-mixed',
  fair: false,
  note: 'redis-baton, half of the callers fair, the others by default (unfair, fairAfter: 1,000), one LockClient a process.',
  skips: allBut(['mixed'], 'it is for callers of both kinds'),
  mixes: true,
  open: async setting => open(setting, {}, index => ({ fair: asksFair(index) })),
}

/** The mutex with which a semaphore of one permit is compared, in the same round. */
export const batonFairMutex: Rival = {
  ...ours,
  name: 'baton-fair-mutex',
  fair: true,
  locks: ['semaphore'],
  note: "redis-baton's mutex, fair, beside its semaphore of one permit. In place of other permits, other mutexes are held.",
  skips: allBut(
    ['semaphore-one', 'semaphore-used-10', 'semaphore-used-1000', 'semaphore-used-10000'],
    'it is a mutex, for scenarios with one permit only',
  ),
  open: async setting => openMutex(setting, { fair: true }),
}

export const batonUnfairMutex: Rival = {
  ...batonFairMutex,
  name: 'baton-unfair-mutex',
  fair: false,
  note: "redis-baton's mutex, unfair for ever, beside its semaphore of one permit. In place of other permits, other mutexes are held.",
  open: async setting => openMutex(setting, { fairAfter: Number.POSITIVE_INFINITY }),
}

/** The lock on one server with which a quorum is compared, in the same round. */
export const batonFairSingle: Rival = {
  ...ours,
  name: 'baton-fair-single',
  fair: true,
  locks: ['quorum'],
  note: "redis-baton's mutex on the first server only, fair, beside locks over several.",
  skips: { 'quorum-frozen': oneServer },
  open: async setting => open(setting, { fair: true }),
}

export const batonUnfairSingle: Rival = {
  ...batonFairSingle,
  name: 'baton-unfair-single',
  fair: false,
  note: "redis-baton's mutex on the first server only, unfair for ever, beside locks over several.",
  open: async setting => open(setting, { fairAfter: Number.POSITIVE_INFINITY }),
}

/**
 * In ms. Servers count once they have been up for longer than the lease, which is 30 s by default. Uptimes are in whole
 * seconds.
 */
const countsServersAfter = 32_000

export const batonFairQuorum: Rival = {
  ...ours,
  name: 'baton-fair-quorum',
  fair: true,
  locks: ['quorum'],
  countsServersAfter,
  note: 'redis-baton over all servers, fair: one queue in each, in one order.',
  open: async setting => openQuorum(setting, { fair: true }),
}

export const batonUnfairQuorum: Rival = {
  ...batonFairQuorum,
  name: 'baton-unfair-quorum',
  fair: false,
  note: 'redis-baton over all servers, unfair for ever: woken by the message that makes a majority.',
  open: async setting => openQuorum(setting, { fairAfter: Number.POSITIVE_INFINITY }),
}

let quorums = 0

/** A client over all servers that counts how often they were asked. */
function openQuorum(setting: Setting, options: ClientOptions): RivalClient {
  const { servers = [setting.url], process } = setting
  quorums += 1
  const label = `bench-${process}-${quorums}`
  const tally = { attempts: 0, secondRounds: 0 }
  const count = (message: unknown) => {
    const poll = message as { label: string; outcome: string; secondRound: boolean }
    if (poll.label !== label) return
    tally.attempts += 1
    if (poll.secondRound) tally.secondRounds += 1
  }
  subscribe('redis-baton:poll', count)
  const client = open({ ...setting, lock: 'mutex' }, { ...options, label }, undefined, servers)
  return {
    ...client,
    tally: () => tally,
    close: async () => {
      unsubscribe('redis-baton:poll', count)
      await client.close()
    },
  }
}

/** An extra contender, which is none of the waiters, holds a mutex of its own. */
function openMutex(setting: Setting, options: ClientOptions): RivalClient {
  const client = open({ ...setting, lock: 'mutex' }, options)
  return {
    ...client,
    contender(index) {
      const contender = client.contender(index, false)
      return index < setting.waiters ? contender : { acquire: key => contender.acquire(`${key}:${index}`) }
    },
  }
}

function open(
  setting: Setting,
  options: ClientOptions,
  callOptions?: (waiter: number) => LockOptions,
  servers?: readonly string[],
): OpenClient {
  const { url, lease, process } = setting
  // The lease is set for the client, so that it is renewed as usual; a call's own lease would be fixed.
  const ofClient = { label: `bench-${process}`, ...options, ...(lease === undefined ? {} : { lease }) }
  const locks = new LockClient(servers ?? url, ofClient)
  return {
    contender(waiter, reading) {
      const lock = locking(locks, setting, reading, callOptions?.(waiter))
      return {
        async acquire(key) {
          const lease = await lock(key)
          return () => lease.release()
        },
      }
    },
    close: () => locks.close(),
  }
}

interface OpenClient extends RivalClient {
  contender(index: number, reading: boolean): Contender
}

/** The objects of the other kinds are made once for each key, as a program would. */
function locking(
  locks: LockClient,
  { lock: kind, permits = 1 }: Setting,
  reading: boolean,
  ofCall: LockOptions | undefined,
): (key: string) => Promise<Lease> {
  if (kind !== 'semaphore' && kind !== 'readWrite') return key => locks.lock(key, ofCall)
  const make = (key: string): Lock => {
    if (kind === 'semaphore') return locks.semaphore(key, permits)
    const { read, write } = locks.readWrite(key)
    return reading ? read : write
  }
  let made: Lock | undefined
  return key => {
    const lock = made?.key === key ? made : make(key)
    made = lock
    return lock.lock(ofCall)
  }
}

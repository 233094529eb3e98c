import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { type ClientOptions, type Lease, type Lock, LockClient, type SemaphoreOptions } from '../../src/index.ts'
import { asksFair, type Contender, groupOf, type Rival, type RivalClient, type Setting } from '../contract.ts'
import { allBut } from '../scenarios.ts'

const oneServer = 'it uses only the first server, which is never frozen'
const ours = { kind: 'baton', package: undefined, runtime: 'node', missing: async () => undefined } as const

export const batonFair: Rival = {
  ...ours,
  name: 'baton-fair',
  fair: true,
  locks: ['mutex', 'semaphore', 'readWrite'],
  note: 'redis-baton in fair mode: waiters queue in Redis. One LockClient per process.',
  open: async setting => open(setting, { fair: true }),
}

export const batonUnfair: Rival = {
  ...ours,
  name: 'baton-unfair',
  fair: false,
  locks: ['mutex', 'semaphore', 'readWrite'],
  note: 'redis-baton, always unfair (fairAfter: Infinity): messages wake waiters. One LockClient per process.',
  // With the default `fairAfter`, a caller would join the fair queue after 50 ms. Only baton-fair measures that
  // queue, so callers of this rival never join it.
  open: async setting => open(setting, { fairAfter: Number.POSITIVE_INFINITY }),
}

export const batonMixed: Rival = {
  ...ours,
  name: 'baton-mixed',
  fair: false,
  note: 'redis-baton, half of the callers fair, the others with the default (unfair, fairAfter: 50). One LockClient per process.',
  skips: allBut(['mixed'], 'it is only for scenarios with both fair and unfair callers'),
  mixes: true,
  open: async setting => open(setting, {}, index => ({ fair: asksFair(index) })),
}

/** A mutex to compare with a semaphore of one permit. Both are measured in each round. */
export const batonFairMutex: Rival = {
  ...ours,
  name: 'baton-fair-mutex',
  fair: true,
  locks: ['semaphore'],
  note: "redis-baton's mutex, fair, to compare with its semaphore of one permit. Where the semaphore has other permits in use, mutexes of other keys are held.",
  skips: allBut(
    ['semaphore-one', 'semaphore-used-10', 'semaphore-used-1000', 'semaphore-used-10000'],
    'it is a mutex, so it takes part only in scenarios with one permit',
  ),
  open: async setting => openMutex(setting, { fair: true }),
}

export const batonUnfairMutex: Rival = {
  ...batonFairMutex,
  name: 'baton-unfair-mutex',
  fair: false,
  note: "redis-baton's mutex, always unfair, to compare with its semaphore of one permit. Where the semaphore has other permits in use, mutexes of other keys are held.",
  open: async setting => openMutex(setting, { fairAfter: Number.POSITIVE_INFINITY }),
}

/** A mutex on one server, to compare with a quorum. Both are measured in each round. */
export const batonFairSingle: Rival = {
  ...ours,
  name: 'baton-fair-single',
  fair: true,
  locks: ['quorum'],
  note: "redis-baton's mutex on the first server only, fair, to compare with locks over several servers.",
  skips: { 'quorum-frozen': oneServer },
  open: async setting => open(setting, { fair: true }),
}

export const batonUnfairSingle: Rival = {
  ...batonFairSingle,
  name: 'baton-unfair-single',
  fair: false,
  note: "redis-baton's mutex on the first server only, always unfair, to compare with locks over several servers.",
  open: async setting => open(setting, { fairAfter: Number.POSITIVE_INFINITY }),
}

/**
 * How long a server must have been up before redis-baton accepts its vote, in ms. redis-baton requires an uptime of one
 * lease, which is 30 s by default. But servers report their uptime in whole seconds, and redis-baton subtracts one more
 * second. The result may be almost 2 s less than the true uptime, so this constant is 3 s longer than the lease.
 */
const countsServersAfter = 33_000

export const batonFairQuorum: Rival = {
  ...ours,
  name: 'baton-fair-quorum',
  fair: true,
  locks: ['quorum'],
  countsServersAfter,
  note: 'redis-baton over all servers, fair: each server has a queue, and all queues have the same order.',
  open: async setting => openQuorum(setting, { fair: true }),
}

export const batonUnfairQuorum: Rival = {
  ...batonFairQuorum,
  name: 'baton-unfair-quorum',
  fair: false,
  note: 'redis-baton over all servers, always unfair: a waiter is woken when a majority of servers has sent it a message.',
  open: async setting => openQuorum(setting, { fairAfter: Number.POSITIVE_INFINITY }),
}

export const batonGroups: Rival = {
  ...ours,
  name: 'baton-groups',
  fair: true,
  locks: ['groups'],
  note: "redis-baton's semaphore; each call has the group and the groupLimit of its waiter. One LockClient per process.",
  open: async setting => {
    const { processes, process, waiters, groupLimit } = setting
    // The waiters that the order 'hold' adds take all permits, so their group has no limit.
    return open(setting, {}, waiter =>
      waiter < waiters ? { group: `${groupOf(setting, processes, process, waiter)}`, groupLimit } : { group: 'all' },
    )
  },
}

/** A semaphore whose waiters have no group, to compare with groups. Both are measured in each round. */
export const batonNoGroups: Rival = {
  ...batonGroups,
  name: 'baton-no-groups',
  note: "redis-baton's semaphore, fair, without groups, to compare with groups.",
  skips: allBut(
    ['groups-2x1', 'groups-1x10', 'groups-1x1000', 'groups-1x10000', 'groups-jobs'],
    'it has no groups, so their number changes nothing',
  ),
  open: async setting => open(setting, { fair: true }),
}

let quorums = 0

/** Opens a client over all servers, and counts how often the client asks them for a lock. */
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

/**
 * Opens a client whose waiters share the key's mutex. A waiter whose index is `setting.waiters` or more was added by
 * the order 'hold'. Each of these waiters locks a key of its own, because a mutex has only one holder.
 */
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
  callOptions?: (waiter: number) => SemaphoreOptions,
  servers?: readonly string[],
): OpenClient {
  const { url, lease, process } = setting
  // The lease is set as an option of the client, so that the client renews it. The `lease` of a single call would not
  // be renewed.
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

/**
 * Returns a function that locks a key. As in a usual program, the object of a semaphore or of a read-write lock is made
 * once per key.
 */
function locking(
  locks: LockClient,
  { lock: kind, permits = 1 }: Setting,
  reading: boolean,
  ofCall: SemaphoreOptions | undefined,
): (key: string) => Promise<Lease> {
  if (kind !== 'semaphore' && kind !== 'groups' && kind !== 'readWrite') return key => locks.lock(key, ofCall)
  const make = (key: string): Lock => {
    if (kind !== 'readWrite') return locks.semaphore(key, permits)
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

import type { Scenario } from './contract.ts'

const semaphore = { lock: 'semaphore', keys: 1, hold: 0 } as const

const semaphores = [
  {
    ...semaphore,
    name: 'semaphore-2x8-hold5',
    title: 'semaphore: 2 processes × 8 waiters on 4 permits, hold 5 ms',
    kind: 'loop',
    processes: 2,
    waiters: 8,
    hold: 5,
    permits: 4,
  },
  {
    ...semaphore,
    name: 'semaphore-one',
    title: 'semaphore: 2 processes × 8 waiters on 1 permit, hold 5 ms, and the mutex for comparison',
    kind: 'loop',
    processes: 2,
    waiters: 8,
    hold: 5,
    permits: 1,
  },
  {
    ...semaphore,
    name: 'semaphore-used-10',
    title: 'semaphore: one caller acquires and releases while 10 other permits are in use',
    kind: 'loop',
    processes: 1,
    waiters: 1,
    permits: 1,
    inUse: 10,
  },
  {
    ...semaphore,
    name: 'semaphore-used-1000',
    title: 'semaphore: one caller acquires and releases while 1,000 other permits are in use',
    kind: 'loop',
    processes: 1,
    waiters: 1,
    permits: 1,
    inUse: 1_000,
  },
  {
    ...semaphore,
    name: 'semaphore-used-10000',
    title: 'semaphore: one caller acquires and releases while 10,000 other permits are in use',
    kind: 'loop',
    processes: 1,
    waiters: 1,
    permits: 1,
    inUse: 10_000,
  },
  {
    ...semaphore,
    name: 'semaphore-drain-10000',
    title: 'semaphore: 10,000 queued waiters get 4 permits in turn',
    kind: 'drain',
    processes: 1,
    waiters: 10_000,
    permits: 4,
  },
  {
    ...semaphore,
    name: 'semaphore-2x1',
    title: 'semaphore: 2 processes × 1 waiter on 1 permit, hold 0',
    kind: 'loop',
    processes: 2,
    waiters: 1,
    permits: 1,
  },
  {
    ...semaphore,
    name: 'semaphore-2x8',
    title: 'semaphore: 2 processes × 8 waiters on 4 permits, hold 0',
    kind: 'loop',
    processes: 2,
    waiters: 8,
    permits: 4,
  },
] as const satisfies readonly Scenario[]

const readWrite = { lock: 'readWrite', processes: 2, keys: 1 } as const

const readWriteLocks = [
  {
    ...readWrite,
    name: 'read-write-2x10',
    title: 'read-write: 2 processes × 10 waiters, 1 in 10 a writer, hold 5 ms',
    kind: 'loop',
    waiters: 10,
    hold: 5,
    writerEvery: 10,
  },
  {
    ...readWrite,
    name: 'read-write-admit-1',
    title: 'read-write: a writer releases to 1 waiting reader of another process',
    kind: 'admission',
    processes: 1,
    waiters: 1,
    hold: 100,
  },
  {
    ...readWrite,
    name: 'read-write-admit-1000',
    title: 'read-write: a writer releases to 1,000 waiting readers of 2 processes',
    kind: 'admission',
    waiters: 500,
    hold: 100,
  },
] as const satisfies readonly Scenario[]

const quorum = { lock: 'quorum', kind: 'loop', servers: 3, keys: 1 } as const
/**
 * Each waiter has its own client, as if it were in a process of its own. So each waiter has its own connections, and
 * the requests of two waiters may reach the servers in different orders.
 */
const apart = { ...quorum, processes: 2, hold: 5, apart: true } as const

const quorums = [
  {
    ...quorum,
    name: 'quorum-uncontended-3',
    title: 'quorum: one caller locks and releases, 3 servers',
    processes: 1,
    waiters: 1,
    hold: 0,
  },
  {
    ...quorum,
    name: 'quorum-uncontended-5',
    title: 'quorum: one caller locks and releases, 5 servers',
    processes: 1,
    waiters: 1,
    hold: 0,
    servers: 5,
  },
  {
    ...quorum,
    name: 'quorum-frozen',
    title: 'quorum: one caller locks and releases while 1 of 5 servers is frozen',
    processes: 1,
    waiters: 1,
    hold: 0,
    servers: 5,
    frozen: 1,
  },
  {
    ...quorum,
    name: 'quorum-2x8-hold5',
    title: 'quorum: 2 processes × 8 waiters, hold 5 ms, 3 servers',
    processes: 2,
    waiters: 8,
    hold: 5,
  },
  {
    ...apart,
    name: 'quorum-split-2',
    title: 'quorum: 2 clients with one waiter each, hold 5 ms, 3 servers',
    waiters: 1,
  },
  {
    ...apart,
    name: 'quorum-split-8',
    title: 'quorum: 8 clients with one waiter each, hold 5 ms, 3 servers',
    waiters: 4,
  },
  {
    ...apart,
    name: 'quorum-split-32',
    title: 'quorum: 32 clients with one waiter each, hold 5 ms, 3 servers',
    waiters: 16,
  },
] as const satisfies readonly Scenario[]

const groups = { ...semaphore, lock: 'groups' } as const

/** A queue of so many waiters, in so many groups of equal size. Each group may have one of the two permits. */
function drainOf<Groups extends number, Waiters extends number>(groups: Groups, waiters: Waiters) {
  const [many, of] = [waiters.toLocaleString('en'), groups.toLocaleString('en')]
  return {
    ...semaphore,
    lock: 'groups',
    name: `groups-${groups}x${waiters}`,
    title: `groups: ${many} queued waiters in ${of} ${groups === 1 ? 'group' : 'groups'} get 2 permits in turn, 1 a group`,
    kind: 'drain',
    processes: 1,
    waiters,
    permits: 2,
    groups,
    groupLimit: 1,
  } as const
}

const withGroups = [
  {
    ...groups,
    name: 'groups-2x1',
    title: 'groups: 2 processes × 1 waiter, each in its own group, on 1 permit, hold 0',
    kind: 'loop',
    processes: 2,
    waiters: 1,
    permits: 1,
    groups: 2,
  },
  drainOf(1, 10),
  drainOf(10, 10),
  drainOf(1, 1_000),
  drainOf(10, 1_000),
  drainOf(1_000, 1_000),
  drainOf(1, 10_000),
  drainOf(10, 10_000),
  drainOf(1_000, 10_000),
  {
    ...groups,
    name: 'groups-jobs',
    title: 'groups: 4 processes, 3 tenants with 1,000, 19 and 1 jobs of 5 ms, 4 permits, 3 a tenant',
    kind: 'burst',
    processes: 4,
    waiters: 255,
    hold: 5,
    permits: 4,
    groups: [1_000, 19, 1],
    groupLimit: 3,
  },
] as const satisfies readonly Scenario[]

/**
 * All scenarios, in the order of the reports. The scenarios of the mutex come first: loops with work under the lock,
 * which resemble real programs, then other trials, then loops that only lock and release. The scenarios of the other
 * kinds of lock follow. Constants that concern only one kind of trial are in its file in trials/.
 */
export const scenarios = [
  {
    name: '2x8-hold5',
    title: '2 processes × 8 waiters, hold 5 ms',
    kind: 'loop',
    processes: 2,
    waiters: 8,
    keys: 1,
    hold: 5,
  },
  {
    name: 'mixed',
    title: '2 processes × 8 waiters, half fair and half unfair, hold 5 ms',
    kind: 'loop',
    processes: 2,
    waiters: 8,
    keys: 1,
    hold: 5,
    mixed: true,
  },
  {
    name: 'uncontended',
    title: 'one caller without contention: lock and release',
    kind: 'loop',
    processes: 1,
    waiters: 1,
    keys: 1,
    hold: 0,
  },
  {
    name: 'burst-200',
    title: 'burst: 200 waiters of 2 processes ask once, in a known order, hold 1 ms',
    kind: 'burst',
    processes: 2,
    waiters: 100,
    keys: 1,
    hold: 1,
  },
  {
    name: 'drain-10',
    title: 'drain: 10 queued waiters get the lock in turn',
    kind: 'drain',
    processes: 1,
    waiters: 10,
    keys: 1,
    hold: 0,
  },
  {
    name: 'drain-10000',
    title: 'drain: 10,000 queued waiters get the lock in turn',
    kind: 'drain',
    processes: 1,
    waiters: 10_000,
    keys: 1,
    hold: 0,
  },
  {
    name: 'crash-holder',
    title: 'the holder is killed, lease 2 s: time until the next grant',
    kind: 'crash-holder',
    processes: 2,
    waiters: 10,
    keys: 1,
    hold: 0,
  },
  {
    name: 'crash-waiters',
    title: '50 queued waiters are killed, then the holder releases: time until the next grant',
    kind: 'crash-waiters',
    processes: 2,
    waiters: 50,
    keys: 1,
    hold: 0,
  },
  {
    name: 'idle-1000',
    title: '1,000 parked waiters in one client',
    kind: 'idle',
    processes: 2,
    waiters: 1000,
    keys: 1,
    hold: 0,
  },
  {
    name: 'keys-1000',
    title: '1,000 keys × 2 waiters in one process, hold 0',
    kind: 'loop',
    processes: 1,
    waiters: 2000,
    keys: 1000,
    hold: 0,
  },
  { name: '2x8', title: '2 processes × 8 waiters, hold 0', kind: 'loop', processes: 2, waiters: 8, keys: 1, hold: 0 },
  {
    name: '2x100',
    title: '2 processes × 100 waiters, hold 0',
    kind: 'loop',
    processes: 2,
    waiters: 100,
    keys: 1,
    hold: 0,
  },
  {
    name: '2x1000',
    title: '2 processes × 1,000 waiters, hold 0',
    kind: 'loop',
    processes: 2,
    waiters: 1000,
    keys: 1,
    hold: 0,
  },
  ...semaphores,
  ...readWriteLocks,
  ...quorums,
  ...withGroups,
] as const satisfies readonly Scenario[]

export type ScenarioName = (typeof scenarios)[number]['name']

/** Returns a value for `Rival.skips` that skips all scenarios except `names`, each for the same reason. */
export function allBut(names: readonly ScenarioName[], reason: string): Record<string, string> {
  return Object.fromEntries(
    scenarios.filter(({ name }) => !(names as readonly string[]).includes(name)).map(({ name }) => [name, reason]),
  )
}

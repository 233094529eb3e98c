/** The project's goals for redis-baton. '2 × 8' means 2 processes with 8 waiters each. */
import { across, admission, atLeast, atMost, best, faults, figure, type Goal, handoff, ratio, within } from './goal.ts'
import { words } from './html-measures.ts'

const broken = ['overlaps', 'unfinished', 'errors'] as const

export const unthrottled: readonly Goal[] = [
  ratio('fair throughput, 2 × 8, hold 5 ms', 'throughput', '2x8-hold5', 'baton-fair', 'floor-publish', atLeast(0.98)),
  ratio(
    'unfair throughput, 2 × 8, hold 5 ms',
    'throughput',
    '2x8-hold5',
    'baton-unfair',
    'floor-publish',
    atLeast(0.97),
  ),
  handoff('fair hand-off p50, 2 × 8, hold 5 ms', '2x8-hold5', 'baton-fair', 'floor-publish', atMost(1.25)),
  handoff('unfair hand-off p50, 2 × 8, hold 5 ms', '2x8-hold5', 'baton-unfair', 'floor-publish', atMost(1.5)),
  within(
    'unfair longest wait ÷ median wait, 2 × 8, hold 5 ms',
    '2x8-hold5',
    'baton-unfair',
    'waitMax',
    'waitP50',
    atMost(5),
  ),
  ...['fair', 'unfair'].map(mode =>
    ratio(
      `${mode} client CPU per acquisition, 2 × 8, hold 5 ms`,
      'clientCpu',
      '2x8-hold5',
      `baton-${mode}`,
      'floor-publish',
      atMost(1.35),
    ),
  ),
  ...['fair', 'unfair'].map(mode =>
    figure(
      `${mode} bytes per acquisition, 2 × 8, hold 5 ms`,
      'bytes',
      '2x8-hold5',
      `baton-${mode}`,
      atMost(350),
      0,
      'B',
    ),
  ),
  ...['fair', 'unfair'].flatMap(mode => [
    ratio(
      `uncontended lock + release p50, ${mode}`,
      'cycleP50',
      'uncontended',
      `baton-${mode}`,
      'floor-set',
      atMost(1.12),
    ),
    figure(
      `uncontended server time per command, ${mode}`,
      'commandTime',
      'uncontended',
      `baton-${mode}`,
      atMost(3.5),
      1,
      'µs',
    ),
    figure(`uncontended bytes per acquisition, ${mode}`, 'bytes', 'uncontended', `baton-${mode}`, atMost(350), 0, 'B'),
  ]),
  faults('overlaps, starved waiters, calls that never return, and errors: mutex, all scenarios', ['mutex'], /^baton/, [
    ...broken,
    'starved',
  ]),
  figure('commands per acquisition, fair, 2 × 8, hold 5 ms', 'commands', '2x8-hold5', 'baton-fair', atMost(2.1), 2),
  ...['2x8', '2x100', '2x1000', 'drain-10', 'drain-10000'].flatMap(scenario => [
    figure(`commands per acquisition, fair, ${shown(scenario)}`, 'commands', scenario, 'baton-fair', atMost(2.1), 2),
    figure(
      `commands per acquisition, unfair, ${shown(scenario)}`,
      'commands',
      scenario,
      'baton-unfair',
      atMost(1.3),
      3,
    ),
  ]),
  figure(
    'commands per second with 1,000 parked waiters, fair',
    'commandsPerSecond',
    'idle-1000',
    'baton-fair',
    atMost(2),
    2,
  ),
  figure(
    'commands per second with 1,000 parked waiters, unfair',
    'commandsPerSecond',
    'idle-1000',
    'baton-unfair',
    atMost(2),
    2,
  ),
  figure('client heap per parked waiter, fair', 'heapPerWaiter', 'idle-1000', 'baton-fair', atMost(2_048), 0, 'B'),
  figure('client heap per parked waiter, unfair', 'heapPerWaiter', 'idle-1000', 'baton-unfair', atMost(2_048), 0, 'B'),
  figure('Redis memory per parked waiter, fair', 'redisPerWaiter', 'idle-1000', 'baton-fair', atMost(400), 0, 'B'),
  ratio('time to drain a burst of 200, fair', 'drain', 'burst-200', 'baton-fair', 'floor-publish', atMost(1.06)),
  figure('inverted pairs in a burst of 200, fair', 'inversions', 'burst-200', 'baton-fair', atMost(0), 3),
  across(
    'server time per fair release, 10,000 waiters ÷ 10 waiters',
    'releaseCost',
    'drain-10000',
    'drain-10',
    'baton-fair',
    atMost(1.5),
  ),
  within(
    'next grant after 50 queued waiters crashed ÷ without the crash, fair',
    'crash-waiters',
    'baton-fair',
    'nextGrant',
    'ordinaryHandoff',
    atMost(2),
  ),
  ...['fair', 'unfair'].map(mode =>
    best(
      `${mode} throughput, 1,000 keys × 2 waiters ÷ best rival that uses Redis`,
      'keys-1000',
      `baton-${mode}`,
      /^live-mutex/,
    ),
  ),
  handoff('fair hand-off p50, 2 × 8, hold 0', '2x8', 'baton-fair', 'floor-publish', atMost(1.3)),
  ...(
    [
      ['2x8', 0.85],
      ['2x100', 0.9],
      ['2x1000', 0.85],
    ] as const
  ).map(([scenario, least]) =>
    ratio(`fair throughput, ${shown(scenario)}`, 'throughput', scenario, 'baton-fair', 'floor-publish', atLeast(least)),
  ),
  best('fair throughput, 2 × 1,000, hold 0 ÷ best rival, with Redis or without', '2x1000', 'baton-fair'),
  ...['2x8', '2x100'].map(scenario =>
    ratio(`unfair throughput, ${shown(scenario)}`, 'throughput', scenario, 'baton-unfair', 'floor-blpop', atLeast(8)),
  ),
  ...['2x8', '2x100'].map(scenario =>
    figure(`unfair Jain's index, ${shown(scenario)}`, 'jain', scenario, 'baton-unfair', atLeast(0.9), 3),
  ),
  ...['2x8', '2x100'].map(scenario =>
    figure(`unfair longest wait, ${shown(scenario)}`, 'waitMax', scenario, 'baton-unfair', atMost(100), 0, 'ms'),
  ),
]

const others = ['semaphore', 'readWrite'] as const

/** Goals for semaphores and read-write locks. */
export const otherKinds: readonly Goal[] = [
  faults('overlaps, calls that never return, and errors: semaphores and read-write locks', others, /^baton/, broken),
  // In the unfair mode measured here (`fairAfter: Infinity`), a writer gets no turn while readers keep coming. So only
  // the fair mode has a goal for starved waiters.
  faults('starved waiters: semaphores and read-write locks, fair', others, /^baton-fair/, ['starved']),
  ...['fair', 'unfair'].map(mode =>
    handoff(
      `${mode} hand-off p50, semaphore of 1 permit, 2 × 8, hold 5 ms`,
      'semaphore-one',
      `baton-${mode}`,
      `baton-${mode}-mutex`,
      atMost(1.15),
    ),
  ),
  ratio(
    'acquire + release p50, semaphore with 1,000 permits in use',
    'cycleP50',
    'semaphore-used-1000',
    'baton-fair',
    'baton-fair-mutex',
    atMost(1.5),
  ),
  across(
    'server time per command, semaphore, 10,000 permits in use ÷ 10 in use',
    'commandTime',
    'semaphore-used-10000',
    'semaphore-used-10',
    'baton-fair',
    atMost(1.5),
  ),
  ...(
    [
      ['semaphore-2x1', 'semaphore, 2 waiters'],
      ['semaphore-2x8', 'semaphore, 16 waiters'],
      ['semaphore-2x8-hold5', 'semaphore, 16 waiters, hold 5 ms'],
      ['semaphore-drain-10000', 'semaphore, 10,000 waiters'],
      ['read-write-2x10', 'read-write, 20 waiters, hold 5 ms'],
      ['read-write-admit-1000', 'read-write, 1,000 readers'],
    ] as const
  ).flatMap(([scenario, what]) =>
    ['fair', 'unfair'].map(mode =>
      figure(`commands per acquisition, ${mode}, ${what}`, 'commands', scenario, `baton-${mode}`, atMost(2.1), 2),
    ),
  ),
  figure(
    'messages when a writer releases to 1,000 readers of 2 clients, fair',
    'messages',
    'read-write-admit-1000',
    'baton-fair',
    atMost(2),
    0,
  ),
  admission(
    "time from a writer's release until 1,000 readers run, fair",
    'read-write-admit-1000',
    'read-write-admit-1',
    'baton-fair',
  ),
]

const modes = ['fair', 'unfair'] as const
const single = 'baton-fair-single'

/**
 * Goals for a mutex over several servers. The fair mode and the unfair mode are each compared with a mutex on one of
 * the servers.
 */
export const quorum: readonly Goal[] = [
  faults('overlaps, calls that never return, and errors: quorum', ['quorum'], /^baton/, broken),
  ...modes.flatMap(mode =>
    ([3, 5] as const).map(servers =>
      ratio(
        `uncontended lock + release p50, ${mode}, ${servers} servers`,
        'cycleP50',
        `quorum-uncontended-${servers}`,
        `baton-${mode}-quorum`,
        `baton-${mode}-single`,
        atMost(1.35),
      ),
    ),
  ),
  ...modes.flatMap(mode => {
    const [what, scenario, rival] = [`${mode}, 2 × 8, hold 5 ms, 3 servers`, 'quorum-2x8-hold5', `baton-${mode}-quorum`]
    return [
      figure(`starved waiters, ${what}`, 'starved', scenario, rival, atMost(0), 0),
      ratio(`longest wait, ${what}`, 'waitMax', scenario, rival, single, atMost(2)),
      ratio(`throughput, ${what}`, 'throughput', scenario, rival, single, atLeast(0.8)),
    ]
  }),
  ...modes.map(mode =>
    across(
      `uncontended lock + release p99, ${mode}, 1 of 5 servers frozen ÷ none frozen`,
      'cycleP99',
      'quorum-frozen',
      'quorum-uncontended-5',
      `baton-${mode}-quorum`,
      atMost(2),
    ),
  ),
]

/** How many groups, and how many waiters; the scenarios that drain such queues. */
const crowds = ['1x10', '10x10', '1x1000', '10x1000', '1000x1000', '1x10000', '10x10000', '1000x10000'] as const

/** Goals for a semaphore with groups, and for one without, beside the semaphore of before there were groups. */
export const groups: readonly Goal[] = [
  faults('overlaps, calls that never return, and errors: groups', ['groups'], /^baton/, broken),
  ...['2x1', ...crowds].map(crowd =>
    figure(`commands per acquisition, groups-${crowd}`, 'commands', `groups-${crowd}`, 'baton-groups', atMost(2.1), 2),
  ),
  ...(
    [
      ['10x10', '1x10'],
      ['1000x1000', '1x1000'],
      ['1000x10000', '1x10000'],
      ['1x10000', '1x10'],
      ['10x10000', '10x10'],
    ] as const
  ).map(([many, few]) =>
    across(
      `script of a release p50, groups-${many} ÷ groups-${few}`,
      'releaseP50',
      `groups-${many}`,
      `groups-${few}`,
      'baton-groups',
      atMost(1.3),
    ),
  ),
  ...modes.flatMap(mode =>
    (
      [
        ['bytes', 'semaphore-2x8', atMost(1.01)],
        ['commandTime', 'semaphore-2x8', atMost(1.05)],
        ['releaseCost', 'semaphore-drain-10000', atMost(1.05)],
        ['throughput', 'semaphore-2x8', atLeast(0.95)],
        ['throughput', 'semaphore-2x8-hold5', atLeast(0.95)],
      ] as const
    ).map(([measure, scenario, limit]) =>
      ratio(
        `${words[measure].title}, ${mode}, ${scenario}`,
        measure,
        scenario,
        `baton-${mode}`,
        `before-${mode}`,
        limit,
      ),
    ),
  ),
]

export const delayed: readonly Goal[] = [
  handoff('fair hand-off p50, 2 × 8, hold 5 ms', '2x8-hold5', 'baton-fair', 'floor-publish', atMost(1.05)),
  handoff('fair hand-off p50, 2 × 8, hold 0', '2x8', 'baton-fair', 'floor-publish', atMost(1.05)),
  handoff('fair hand-off p50, 2 × 8, hold 0', '2x8', 'baton-fair', 'redisson-fair', atMost(0.6)),
]

function shown(scenario: string): string {
  return scenario
    .replace(/^(\d+)x(\d+)$/, (_, a, b) => `${a} × ${Number(b).toLocaleString('en')}, hold 0`)
    .replace(/^drain-(\d+)$/, (_, n) => `drain of ${Number(n).toLocaleString('en')} waiters`)
}

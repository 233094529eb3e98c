/** The goals of the project. */
import { across, admission, atLeast, atMost, best, faults, figure, type Goal, handoff, ratio, within } from './goal.ts'

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
  within('unfair, longest wait ÷ median wait, hold 5 ms', '2x8-hold5', 'baton-unfair', 'waitMax', 'waitP50', atMost(5)),
  ...['fair', 'unfair'].map(mode =>
    ratio(
      `${mode}, client CPU an acquisition, 2 × 8, hold 5 ms`,
      'clientCpu',
      '2x8-hold5',
      `baton-${mode}`,
      'floor-publish',
      atMost(1.35),
    ),
  ),
  ...['fair', 'unfair'].map(mode =>
    figure(
      `${mode}, bytes an acquisition, 2 × 8, hold 5 ms`,
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
      `uncontended lock + release, p50, ${mode}`,
      'cycleP50',
      'uncontended',
      `baton-${mode}`,
      'floor-set',
      atMost(1.12),
    ),
    figure(
      `uncontended, server time of one call, ${mode}`,
      'commandTime',
      'uncontended',
      `baton-${mode}`,
      atMost(3.5),
      1,
      'µs',
    ),
    figure(`uncontended, bytes an acquisition, ${mode}`, 'bytes', 'uncontended', `baton-${mode}`, atMost(350), 0, 'B'),
  ]),
  faults('overlaps, starved waiters, calls that never return, errors: redis-baton, everywhere', ['mutex'], /^baton/, [
    ...broken,
    'starved',
  ]),
  figure('commands an acquisition, fair, 2 × 8, hold 5 ms', 'commands', '2x8-hold5', 'baton-fair', atMost(2.1), 2),
  ...['2x8', '2x100', '2x1000', 'drain-10', 'drain-10000'].flatMap(scenario => [
    figure(`commands an acquisition, fair, ${shown(scenario)}`, 'commands', scenario, 'baton-fair', atMost(2.1), 2),
    figure(`commands an acquisition, unfair, ${shown(scenario)}`, 'commands', scenario, 'baton-unfair', atMost(1.3), 3),
  ]),
  figure('idle, commands a second, fair', 'commandsPerSecond', 'idle-1000', 'baton-fair', atMost(2), 2),
  figure('idle, commands a second, unfair', 'commandsPerSecond', 'idle-1000', 'baton-unfair', atMost(2), 2),
  figure('client heap of a parked waiter, fair', 'heapPerWaiter', 'idle-1000', 'baton-fair', atMost(2_048), 0, 'B'),
  figure('client heap of a parked waiter, unfair', 'heapPerWaiter', 'idle-1000', 'baton-unfair', atMost(2_048), 0, 'B'),
  figure('Redis memory of a parked waiter, fair', 'redisPerWaiter', 'idle-1000', 'baton-fair', atMost(400), 0, 'B'),
  ratio('burst of 200, drain, fair', 'drain', 'burst-200', 'baton-fair', 'floor-publish', atMost(1.06)),
  figure('burst of 200, inverted pairs, fair', 'inversions', 'burst-200', 'baton-fair', atMost(0), 3),
  across(
    'server time of one fair release, 10,000 waiters ÷ 10',
    'releaseCost',
    'drain-10000',
    'drain-10',
    'baton-fair',
    atMost(1.5),
  ),
  within(
    'crash of 50 queued waiters, next grant ÷ ordinary hand-off, fair',
    'crash-waiters',
    'baton-fair',
    'nextGrant',
    'ordinaryHandoff',
    atMost(2),
  ),
  ...['fair', 'unfair'].map(mode =>
    best(
      `1,000 keys × 2 waiters, ${mode}, against the best rival with Redis`,
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
  best('fair throughput, 2 × 1,000, against the best rival of any kind', '2x1000', 'baton-fair'),
  ...['2x8', '2x100'].map(scenario =>
    ratio(`unfair throughput, ${shown(scenario)}`, 'throughput', scenario, 'baton-unfair', 'floor-blpop', atLeast(8)),
  ),
  ...['2x8', '2x100'].map(scenario =>
    figure(`unfair, Jain's index, ${shown(scenario)}`, 'jain', scenario, 'baton-unfair', atLeast(0.9), 3),
  ),
  ...['2x8', '2x100'].map(scenario =>
    figure(
      `unfair, longest wait, ${shown(scenario)}, hold 0`,
      'waitMax',
      scenario,
      'baton-unfair',
      atMost(100),
      0,
      'ms',
    ),
  ),
]

const others = ['semaphore', 'readWrite'] as const

/** The goals for semaphores and read-write locks. */
export const otherKinds: readonly Goal[] = [
  faults('overlaps, calls that never return, errors: semaphores and read-write locks', others, /^baton/, broken),
  // With callers that stay unfair for ever, a writer gets no turn while readers keep coming.
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
    'acquire + release, p50, semaphore with 1,000 permits in use',
    'cycleP50',
    'semaphore-used-1000',
    'baton-fair',
    'baton-fair-mutex',
    atMost(1.5),
  ),
  across(
    'server time of a call, semaphore, 10,000 permits in use ÷ 10',
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
      figure(`commands an acquisition, ${mode}, ${what}`, 'commands', scenario, `baton-${mode}`, atMost(2.1), 2),
    ),
  ),
  figure(
    "messages of a writer's end, 1,000 readers of 2 clients, fair",
    'messages',
    'read-write-admit-1000',
    'baton-fair',
    atMost(2),
    0,
  ),
  admission(
    "1,000 readers run after a writer's end, fair",
    'read-write-admit-1000',
    'read-write-admit-1',
    'baton-fair',
  ),
]

const modes = ['fair', 'unfair'] as const
const single = 'baton-fair-single'

/** For a mutex over several servers, compared with the fair mode on one of them. */
export const quorum: readonly Goal[] = [
  faults('overlaps, calls that never return, errors: quorum', ['quorum'], /^baton/, broken),
  ...modes.flatMap(mode =>
    ([3, 5] as const).map(servers =>
      ratio(
        `uncontended lock + release, p50, ${mode}, ${servers} servers`,
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
      `uncontended lock + release, p99, ${mode}, 1 of 5 servers frozen ÷ none`,
      'cycleP99',
      'quorum-frozen',
      'quorum-uncontended-5',
      `baton-${mode}-quorum`,
      atMost(2),
    ),
  ),
]

export const delayed: readonly Goal[] = [
  handoff('fair hand-off p50, 2 × 8, hold 5 ms', '2x8-hold5', 'baton-fair', 'floor-publish', atMost(1.05)),
  handoff('fair hand-off p50, 2 × 8, hold 0', '2x8', 'baton-fair', 'floor-publish', atMost(1.05)),
  handoff('fair hand-off p50, 2 × 8, hold 0, against Redisson', '2x8', 'baton-fair', 'redisson-fair', atMost(0.6)),
]

function shown(scenario: string): string {
  return scenario
    .replace(/^(\d+)x(\d+)$/, (_, a, b) => `${a} × ${Number(b).toLocaleString('en')}`)
    .replace(/^drain-(\d+)$/, (_, n) => `${Number(n).toLocaleString('en')} queued`)
}

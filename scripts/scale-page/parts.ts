/** Writes the generated parts of docs/scale.md: measured tables, and figures computed from them. */
import { markdownTable } from 'markdown-table'
import { HEARD, type Scale } from '../scale/figures.ts'
import { limits, onePerClient } from './limits.ts'
import { step, units } from './units.ts'

type Part = (scale: Scale) => string

export const parts: Readonly<Record<string, Part>> = {
  machine: ({ machine, runs }) => {
    const dates = Object.values(runs)
      .map(({ date }) => date.slice(0, 10))
      .sort()
    const others = Object.entries(runs).map(([part, { usedByOthers }]) => {
      return `${part} ${usedByOthers === undefined ? 'unknown' : percent(usedByOthers)}`
    })
    return (
      `Measured: [scale.json](../benchmarks/results/scale.json), ${[...new Set(dates)].join(', ')}: ${machine.cores} cores ` +
      `(${machine.cpu}), ${machine.system}, Node ${machine.node}, ${machine.redis}. ` +
      `Other programs used so much of the cores meanwhile: ${others.join(', ')}.`
    )
  },

  units: scale =>
    table(
      ['', 'memory of the process, bytes', 'of Redis, bytes', 'CPU of the process, µs/s', 'of Redis, µs/s'],
      units(scale).map(({ what, bytes, idling }) => [
        what,
        whole(bytes.client),
        whole(bytes.server),
        shown(idling.client),
        shown(idling.server),
      ]),
    ),

  beats: scale => {
    const { held } = scale
    const [connected, holding] = [step(scale, 'connected'), step(scale, 'each holds a lock')]
    const rows = [
      ['a renewal of one lock, of many', held.renewing.client / renewed(held), held.renewing.server / renewed(held)],
      ...scale.parked.map(({ what, idling, waiters }): [string, number, number] => {
        const beats = (waiters * 3) / 10
        return [`a heartbeat of one waiter, ${what}`, idling.client / beats, idling.server / beats]
      }),
      [
        'a command of a client that holds one lock: a beat or a renewal',
        (holding.idling.client - connected.idling.client) / holding.commandsPerSecond,
        (holding.idling.server - connected.idling.server) / holding.commandsPerSecond,
      ],
    ] as const
    return table(
      ['', 'CPU of the process, µs', 'of Redis, µs'],
      rows.map(([what, client, server]) => [what, shown(client), shown(server)]),
    )
  },

  limits: scale =>
    table(
      ['so many of them', 'use up one core of the server', 'fill 1 GB of it'],
      limits(scale).map(({ what, core, gigabyte }) => [what, rounded(core), rounded(gigabyte)]),
    ),

  first: scale => {
    const { clients, share, memory } = onePerClient(scale)
    return (
      `An example: each process holds one lock at a time and takes a new one every second. Redis accepts ${rounded(clients)} such clients ` +
      `with its default \`maxclients\` of 10,000. They use ${percent(share)} of one core and ${whole(memory / 1e6)} MB. So it is out of ` +
      `connections first, then of CPU, and of memory last.`
    )
  },

  scripts: ({ scripts }) => times(scripts.filter(({ what }) => what !== HEARD)),

  heard: ({ scripts }) => times(scripts.filter(({ what }) => what === HEARD)),

  processes: scale =>
    table(
      ['', 'waiters', 'CPU to park one, µs: process', 'Redis', 'all at rest, commands/s', 'CPU/s: process', 'Redis'],
      scale.parked.map(({ what, waiters, parking, idling, commandsPerSecond }) => [
        what,
        whole(waiters),
        shown(parking.client),
        shown(parking.server),
        whole(commandsPerSecond),
        percent(idling.client / 1e6),
        percent(idling.server / 1e6),
      ]),
    ),

  closing: scale =>
    table(
      ['`close()`', 'waiters', 'CPU for one, µs: process', 'Redis', 'it took, s'],
      scale.parked.map(({ what, waiters, closing }) => [
        what,
        whole(waiters),
        shown(closing.client),
        shown(closing.server),
        shown(closing.ms / 1_000),
      ]),
    ),

  held: ({ held }) =>
    `${whole(held.locks)} locks in one process: each costs ${shown(held.taking.client)} µs of its CPU to take and ` +
    `${shown(held.releasing.client)} µs to release; of Redis ${shown(held.taking.server)} and ${shown(held.releasing.server)} µs. ` +
    `${shown(held.renewalsPerSecond)} script calls a second renew them, for which the process needs ` +
    `${percent(held.renewing.client / 1e6)} of a core and Redis ${percent(held.renewing.server / 1e6)}. The longest turn of its event loop took ` +
    `${whole(held.longestTurn)} ms of CPU, and ${whole(held.lost)} holds were lost.`,

  fleet: ({ fleet }) =>
    table(
      ['step', 'clients', 'connections', 'commands/s', 'CPU of Redis, µs/s', 'a lock and release, µs of Redis'],
      fleet.map(({ what, clients, connections, commandsPerSecond, idling, cycle }) => [
        what,
        whole(clients),
        whole(connections),
        whole(commandsPerSecond),
        whole(idling.server),
        cycle ? shown(cycle.server) : '',
      ]),
    ),

  masters: ({ masters }) =>
    table(
      [
        'masters',
        'acquisitions',
        'CPU for one, µs: clients',
        'masters',
        'each master',
        'of it in scripts',
        'a master at rest, µs/s',
      ],
      masters.map(({ masters, acquisitions, cycle, each, idle }) => [
        whole(masters),
        whole(acquisitions),
        shown(cycle.client),
        shown(cycle.server),
        each.map(({ server }) => shown(server)).join(', '),
        each.map(({ inScripts }) => shown(inScripts)).join(', '),
        whole(idle),
      ]),
    ),

  chores: ({ chores }) => {
    const { close, stats, holds } = chores
    return table(
      ['CPU of the process', 'µs'],
      [
        ['`lock` and release, one caller', shown(chores.lock)],
        ['`tryLock` and release, one caller', shown(chores.tryLock)],
        ...stats.map(({ locks, micros }) => [`\`stats()\` with ${whole(locks)} locks`, shown(micros)]),
        [
          `\`close()\` with ${whole(close.waiters)} waiters of one key, for each (${shown(close.ms / 1_000)} s in all)`,
          shown(close.client),
        ],
        ...holds.flatMap(({ where, holds, taking, releasing }) => [
          [`each of ${whole(holds)} holds of one owner, ${where}, to take`, shown(taking)],
          [`the same, to release`, shown(releasing)],
        ]),
      ],
    )
  },
}

function times(scripts: Scale['scripts']): string {
  const sizes = [...new Set(scripts.map(({ size }) => size))]
  const largest = sizes.at(-1)!
  const rows = [...new Set(scripts.map(({ what }) => what))].map(what => {
    const of = (size: number) => scripts.find(time => time.what === what && time.size === size)!
    const { calls, least, most } = of(largest)
    return [what, ...sizes.map(size => whole(of(size).median)), whole(least), whole(most), whole(calls)]
  })
  const heads = sizes.map(size => `median, ${whole(size)}`)
  const last = [`least, ${whole(largest)}`, `most, ${whole(largest)}`, 'calls']
  return table(['µs of one call', ...heads, ...last], rows)
}

/** Returns the renewals per second: each lock is renewed three times in its lease of 30 s. */
function renewed({ locks }: Scale['held']): number {
  return locks / 10
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return markdownTable([head, ...rows], { align: ['l', ...head.slice(1).map(() => 'r')] })
}

function whole(figure: number): string {
  return figure.toLocaleString('en', { maximumFractionDigits: 0 })
}

function shown(figure: number): string {
  return figure >= 100 ? whole(figure) : figure.toLocaleString('en', { maximumSignificantDigits: 3 })
}

/** Rounds to two digits, because computed figures are not more exact than that. */
function rounded(figure: number): string {
  return Number.isFinite(figure) ? figure.toLocaleString('en', { maximumSignificantDigits: 2 }) : '–'
}

function percent(share: number): string {
  return share.toLocaleString('en', { style: 'percent', maximumSignificantDigits: 2 })
}

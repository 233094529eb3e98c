/**
 * Measures what large numbers of locks cost, and writes the figures to benchmarks/results/scale.json. The tables of
 * docs/scale.md are made from that file (scripts/scale-page).
 *
 *  npm run scale                  measures all parts
 *  npm run scale -- held fleet    measures only these parts, and keeps the figures of the others
 *
 *  scripts  how long one script call occupies the server, by the length of the queue
 *  parked   a process with tens of thousands of waiters
 *  held     a process with 100,000 locks
 *  fleet    2,000 clients of one server
 *  masters  clusters of one, two and three masters
 *  chores   other work of the library
 *
 * CPU and memory are the figures that the system and the servers report for each process, because these figures hardly
 * depend on other load on the machine. The clients run the built library.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { machine, usage, usedByOthers } from '../../benchmarks/harness/machine.ts'
import { chores } from './chores.ts'
import type { Measured, Part, Scale } from './figures.ts'
import { fleet } from './fleet.ts'
import { held } from './held.ts'
import { masters } from './masters.ts'
import { parked } from './parked.ts'
import { scripts } from './script-scenes.ts'
import { goesFirst, startServer } from './server.ts'

const measures: { readonly [P in Part]: (progress: (line: string) => void) => Promise<Measured[P]> } = {
  scripts,
  parked,
  held,
  fleet,
  masters,
  chores,
}
const all = Object.keys(measures) as Part[]
const file = new URL('../../benchmarks/results/scale.json', import.meta.url)

const named = process.argv.slice(2)
const unknown = named.find(name => !(all as string[]).includes(name))
if (unknown !== undefined) {
  console.error(`there is no part '${unknown}': ${all.join(', ')}`)
  process.exit(64)
}

const here = { ...machine(), redis: await serverVersion() }
for (const part of all) {
  if (named.length > 0 && !named.includes(part)) continue
  const begin = usage()
  const date = new Date().toISOString()
  const begun = performance.now()
  const measured = await measures[part](line => {
    console.error(`${part}, ${((performance.now() - begun) / 1_000).toFixed(0)} s: ${line}`)
  })
  const before = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Scale) : undefined
  const run = { date, usedByOthers: usedByOthers(begin, usage()), serversFirst: goesFirst }
  const scale = { ...before, machine: here, runs: { ...before?.runs, [part]: run }, [part]: measured }
  writeFileSync(file, `${JSON.stringify(scale, null, 2)}\n`)
}

async function serverVersion(): Promise<string> {
  await using own = await startServer()
  return own.server.version
}

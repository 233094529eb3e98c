/**
 * A worker process, with one rival and its waiters. Reads orders from stdin and writes a report for each to stdout.
 *
 *   node --expose-gc main.js [module]
 *
 * The module is for tests. Its default export is a list of additional rivals. The worker ends when its stdin closes, so
 * it cannot outlive the runner.
 */
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import type { Order, Report, Rival } from '../contract.ts'
import { rivals } from '../rivals/index.ts'
import { Station } from './station.ts'

const further = process.argv[2]
let station: Station | undefined

const write = process.stdout.write.bind(process.stdout)
// Output of a library must not mix with the reports, so it goes to stderr.
process.stdout.write = process.stderr.write.bind(process.stderr)

function say(report: Report): void {
  write(`${JSON.stringify(report)}\n`)
}

async function obey(order: Order): Promise<Report> {
  if (order.op === 'open') {
    const { setting } = order
    const rival = (await everyRival()).find(({ name }) => name === setting.rival)
    if (!rival) throw new Error(`there is no rival ${setting.rival}`)
    station = await Station.open(rival, setting)
    return { op: 'open' }
  }
  if (!station) throw new Error(`${order.op} before open`)
  switch (order.op) {
    case 'loop':
      return station.loop(order)
    case 'hold':
      return station.hold(order)
    case 'drop':
      return station.drop()
    case 'queue':
      return station.queue(order)
    case 'collect':
      return station.collect(order)
    case 'memory':
      return station.memory()
    case 'close':
      return station.close()
  }
}

async function everyRival(): Promise<readonly Rival[]> {
  if (further === undefined) return rivals
  const module: { default: readonly Rival[] } = await import(pathToFileURL(further).href)
  return [...rivals, ...module.default]
}

let turn = Promise.resolve()
const lines = createInterface({ input: process.stdin })
lines.on('line', line => {
  turn = turn
    .then(() => obey(JSON.parse(line) as Order))
    .then(say, error => say({ op: 'failed', error: error instanceof Error ? error.message : String(error) }))
})
lines.on('close', () => process.exit())

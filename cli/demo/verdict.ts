/**
 * Writes the verdict, for a terminal or a pipe. The verdict compares the findings about the sale with the required
 * values.
 */
import Table from 'cli-table3'
import type { Colors } from 'picocolors/types.js'
import { sale, seconds } from './sale.ts'
import type { Findings } from './witness.ts'

export interface Row {
  readonly what: string
  readonly found: string
  /** The required value. A row without a requirement has `ok: null`. */
  readonly demanded: string
  readonly note: string
  readonly ok: boolean | null
}

/**
 * How much longer than the lease a crash may block the other workers, in ms. A slow machine may need this time to
 * notice that the lease has ended.
 */
const slack = 1_000

export function assess(found: Findings, locked: boolean): Row[] {
  const { sold, oversold, doubles, stockDrift, unanswered, overlapping, lateWrite } = found
  const rows = [
    count('sold', sold, sale.stock),
    count('oversold', oversold, 0),
    count('second sales', doubles, 0, `${found.refusedDoubles} tries refused`),
    count('missing from stock', stockDrift, 0),
    count('orders without answer', unanswered, 0),
    count('overlapping sections', overlapping, 0, `${found.sections} sections`),
    { what: 'late write', found: lateWrite ?? 'none', demanded: 'refused', note: '', ok: lateWrite === 'refused' },
  ]
  if (!locked) return rows
  // If no pairs of requests were compared, 0 inversions prove nothing.
  const order = count('overtaken requests', found.inversions, 0, `${thousands(found.pairs)} pairs`)
  rows.splice(5, 0, { ...order, ok: order.ok && found.pairs > 0 })
  return [...rows, cost('crash cost', found.crashCost), cost('freeze cost', found.freezeCost), handoff(found)]
}

function count(what: string, value: number, demanded: number, note = ''): Row {
  return { what, found: thousands(value), demanded: String(demanded), note, ok: value === demanded }
}

/**
 * Judges how long a crash or a freeze blocked the others. `ms` is the time from the kill or the freeze until another
 * process held the lock.
 */
function cost(what: string, ms: number | null): Row {
  const most = sale.lease + slack
  return {
    what,
    found: ms === null ? 'unknown' : seconds(ms),
    demanded: `< ${seconds(most)}`,
    note: `lease ${seconds(sale.lease)}`,
    ok: ms !== null && ms < most,
  }
}

function handoff({ handoffs: { count: measured, p50, p99 } }: Findings): Row {
  const found = p50 === null || p99 === null ? 'unknown' : `${p50.toFixed(2)} / ${p99.toFixed(2)} ms`
  return { what: 'hand-off p50 / p99', found, demanded: '', note: `${thousands(measured)} measured`, ok: null }
}

export function passed(rows: readonly Row[]): boolean {
  return rows.every(row => row.ok !== false)
}

export function headline(rows: readonly Row[], locked: boolean, took: number): string {
  if (passed(rows)) return `Passed in ${seconds(took)}.`
  return locked ? `FAILED after ${seconds(took)}.` : 'The sale went wrong, as expected without a lock.'
}

/** Returns the most important findings in one sentence. */
export function summary({ sold, oversold, doubles, inversions, overlapping }: Findings, locked: boolean): string {
  const order = locked ? `${inversions} requests overtaken, ` : ''
  const sections = `${overlapping} overlapping critical sections`
  return `${sold} sold, ${oversold} oversold, ${doubles} second sales to a customer, ${order}${sections}.`
}

const mark = (ok: boolean | null) => (ok === null ? ' ' : ok ? '✓' : '✗')

/** Renders the verdict as a table, at most 79 columns wide. */
export function asTable(rows: readonly Row[], colours: Colors): string {
  const dim = (text: string) => colours.dim(text)
  const table = new Table({
    head: ['', '', 'found', 'must be', ''].map(dim),
    style: { head: [], border: ['gray'], compact: true },
    colAligns: ['left', 'left', 'right', 'right', 'left'],
  })
  for (const { what, found, demanded, note, ok } of rows) {
    const colour = ok === null ? colours.cyan : ok ? colours.green : colours.red
    table.push([colour(mark(ok)), what, colours.bold(colour(found)), demanded, dim(note)])
  }
  return table.toString()
}

export function asText(rows: readonly Row[]): string {
  const width = (column: 'what' | 'found' | 'demanded') => Math.max(...rows.map(row => row[column].length))
  const [what, found, demanded] = [width('what'), width('found'), width('demanded')]
  const word = (ok: boolean | null) => (ok === null ? '' : ok ? 'ok' : 'VIOLATED').padEnd(8)
  return rows
    .map(row => {
      const must = row.ok === null ? ' '.repeat(8) : 'must be '
      const values = `${row.what.padEnd(what)}  ${row.found.padStart(found)}  ${must}${row.demanded.padEnd(demanded)}`
      return `  ${word(row.ok)}  ${values}  ${row.note}`.trimEnd()
    })
    .join('\n')
}

function thousands(value: number): string {
  return value.toLocaleString('en')
}

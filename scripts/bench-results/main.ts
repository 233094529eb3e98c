/**
 * Writes the section "Results" of docs/benchmarks.md from the raw results in benchmarks/results/, so that no figure stands there
 * without the run behind it. A test compares the two.
 *
 *   npx tsx scripts/bench-results/main.ts
 */
import { readFileSync, writeFileSync } from 'node:fs'
import type { Results } from '../../src/bench/contract.ts'
import { section } from './section.ts'

const root = new URL('../../', import.meta.url)
const page = new URL('docs/benchmarks.md', root)
const begin = '<!-- from benchmarks/results by scripts/bench-results -->\n'
const end = '<!-- end of results -->\n'

function read(name: string): Results {
  return JSON.parse(readFileSync(new URL(`benchmarks/results/${name}`, root), 'utf8'))
}

/** The page as it has to be. */
export function written(): string {
  const [head, rest] = readFileSync(page, 'utf8').split(begin) as [string, string]
  const tail = rest.slice(rest.indexOf(end))
  return `${head}${begin}\n${section(read('all.json'), read('rtt-1.json'))}\n${tail}`
}

export function present(): string {
  return readFileSync(page, 'utf8')
}

if (process.argv[1] === new URL(import.meta.url).pathname) writeFileSync(page, written())

/**
 * Writes the section "Results" of docs/benchmarks.md, and the figures of README.md, from the raw results in benchmarks/results/, so
 * that none stands there without the run behind it. A test compares them.
 *
 *   npx tsx scripts/bench-results/main.ts
 */
import { readFileSync, writeFileSync } from 'node:fs'
import type { Results } from '../../benchmarks/contract.ts'
import { section, summary } from './section.ts'

const root = new URL('../../', import.meta.url)
const begin = '<!-- from benchmarks/results by scripts/bench-results -->\n'
const end = '<!-- end of results -->\n'

/** What stands between the marks of each page. */
const pages = {
  'docs/benchmarks.md': () => section(read('all.json'), read('rtt-1.json')),
  'README.md': () => summary(read('all.json')),
} as const

type Page = keyof typeof pages

function read(name: string): Results {
  return JSON.parse(readFileSync(new URL(`benchmarks/results/${name}`, root), 'utf8'))
}

export const names = Object.keys(pages) as Page[]

/** The page as it has to be. */
export function written(page: Page): string {
  const [head, rest] = present(page).split(begin) as [string, string]
  return `${head}${begin}\n${pages[page]()}\n${rest.slice(rest.indexOf(end))}`
}

export function present(page: Page): string {
  return readFileSync(new URL(page, root), 'utf8')
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  for (const page of names) writeFileSync(new URL(page, root), written(page))
}

/**
 * Writes the section "Results" of docs/benchmarks.md and the figures of README.md from the raw results in
 * benchmarks/results/. A test checks that both pages match the raw results.
 *
 *   npx tsx scripts/bench-results/main.ts
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { Results } from '../../benchmarks/contract.ts'
import { section, sectionOfKind, summary } from './section.ts'

const root = new URL('../../', import.meta.url)
const begin = '<!-- from benchmarks/results by scripts/bench-results -->\n'
const end = '<!-- end of results -->\n'

/** Each function returns the text that belongs between the marks `begin` and `end` of its page. */
const pages = {
  'docs/benchmarks.md': () =>
    [
      section(read('all.json'), read('rtt-1.json'), repetitions()),
      ...Object.entries(ofKinds).flatMap(([file, title]) =>
        isThere(file) ? [sectionOfKind(title, file, read(file))] : [],
      ),
    ].join('\n'),
  'README.md': () => summary(read('all.json')),
} as const

/**
 * The result files of runs that measure semaphores, read-write locks or a quorum, with their headings. A file may be
 * missing.
 */
const ofKinds = {
  'semaphores.json': 'Semaphores',
  'semaphore-and-mutex.json': 'Semaphore and mutex, seven rounds',
  'read-write.json': 'Read-write locks',
  'quorum.json': 'Several servers',
  'quorum-rtt-1.json': 'Several servers, with 1 ms of network delay',
} as const

type Page = keyof typeof pages

const results = new URL('benchmarks/results/', root)

function isThere(name: string): boolean {
  return existsSync(new URL(name, results))
}

function read(name: string): Results {
  return JSON.parse(readFileSync(new URL(name, results), 'utf8'))
}

/** Reads the results of repeated runs of the same code, if there are any: all-2.json, rtt-1-2.json, and so on. */
function repetitions(): Record<string, Results> {
  const names = readdirSync(results).filter(name => /^(all|rtt-1)-\d+\.json$/.test(name))
  return Object.fromEntries(names.sort().map(name => [name, read(name)]))
}

export const names = Object.keys(pages) as Page[]

/** Returns the page with its generated part up to date. */
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

/**
 * Writes what the documentation shows of the benchmark from the raw results in benchmarks/results/: the section
 * "Results" of docs/benchmarks.md, the picture of README.md, and the picture's text. A test checks that the files match
 * the raw results.
 *
 *   npx tsx scripts/bench-results/main.ts
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { Results } from '../../benchmarks/contract.ts'
import { alternative, picture } from './picture.ts'
import { section, sectionOfKind } from './section.ts'

const root = new URL('../../', import.meta.url)
const begin = '<!-- from benchmarks/results by scripts/bench-results -->\n'
const end = '<!-- end of results -->\n'

/** Each function returns the text of its file, given what is there now. */
const files = {
  'docs/benchmarks.md': (now: string) => {
    const [head, rest] = now.split(begin) as [string, string]
    return `${head}${begin}\n${resultsSection()}\n${rest.slice(rest.indexOf(end))}`
  },
  'docs/pictures/waits.svg': () => picture(read('all.json')),
  'README.md': (now: string) => now.replace(/^!\[.*\]\[picture\]$/m, `![${alternative(read('all.json'))}][picture]`),
} as const

/**
 * The result files of runs that measure semaphores, groups, read-write locks, a quorum, or locks that are not in Redis, with
 * their headings. A file may be missing.
 */
const ofKinds = {
  'semaphores.json': 'Semaphores',
  'semaphore-and-mutex.json': 'Semaphore and mutex, seven rounds',
  'groups.json': 'Groups',
  'semaphore-before.json': 'The semaphore before there were groups',
  'read-write.json': 'Read-write locks',
  'quorum.json': 'Several servers',
  'quorum-rtt-1.json': 'Several servers, with 1 ms of network delay',
  'elsewhere.json': 'Other ways to lock',
} as const

type File = keyof typeof files

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

export const names = Object.keys(files) as File[]

/** Returns the file with its generated part up to date. */
export function written(file: File): string {
  return files[file](present(file))
}

export function present(file: File): string {
  return readFileSync(new URL(file, root), 'utf8')
}

function resultsSection(): string {
  return [
    section(read('all.json'), read('rtt-1.json'), repetitions()),
    ...Object.entries(ofKinds).flatMap(([file, title]) =>
      isThere(file) ? [sectionOfKind(title, file, read(file))] : [],
    ),
  ].join('\n')
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  for (const file of names) writeFileSync(new URL(file, root), written(file))
}

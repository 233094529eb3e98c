/**
 * Writes what the documentation shows of the benchmark from the raw results in benchmarks/results/: the table of
 * docs/benchmarks.md, the picture of README.md, and the picture's text. A test checks that the files match the raw
 * results.
 *
 *   npx tsx benchmarks/report/pages.ts
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { markdownTable } from 'markdown-table'
import type { Results } from '../contract.ts'
import { scenarios } from '../scenarios.ts'
import { contentOf, meaningsOf } from './columns.ts'
import { alternative, picture } from './picture.ts'

const root = new URL('../../', import.meta.url)
const results = new URL('benchmarks/results/', root)
const begin = '<!-- from benchmarks/results by benchmarks/report/pages.ts -->\n'
const end = '<!-- end of results -->\n'

/** Each function returns the text of its file, given what is there now. */
const files = {
  'docs/benchmarks.md': (now: string) => {
    const [head, rest] = now.split(begin) as [string, string]
    return `${head}${begin}\n${section()}\n${rest.slice(rest.indexOf(end))}`
  },
  'docs/pictures/waits.svg': () => picture(read('all.json')),
  'README.md': (now: string) => now.replace(/^!\[.*\]\[picture\]$/m, `![${alternative(read('all.json'))}][picture]`),
} as const

type File = keyof typeof files

export const names = Object.keys(files) as File[]

/** Returns the file with its generated part up to date. */
export function written(file: File): string {
  return files[file](present(file))
}

export function present(file: File): string {
  return readFileSync(new URL(file, root), 'utf8')
}

function read(name: string): Results {
  return JSON.parse(readFileSync(new URL(name, results), 'utf8'))
}

/** Describes the run of everything, and shows its scenario with work inside the lock. */
function section(): string {
  const run = read('all.json')
  const scenario = scenarios.find(({ name }) => name === '2x8-hold5')!
  const { columns, rows } = contentOf(run, scenario, 6)
  const heads = columns.map(({ head, over }) => (over ? `× ${over}` : head.replace('-\n', '').replace('\n', ' ')))
  const lines = rows.map(row => [
    ...row.slice(0, -1).map(text => text.replace(/\n(.*)/, ' ($1)')),
    row.at(-1)!.replaceAll('\n', ', '),
  ])
  const table = markdownTable([['lock', ...heads, 'faults'], ...lines], { align: ['l', ...heads.map(() => 'r'), 'l'] })
  const ratio = '× and a name: the median of the figure before, divided by that of this lock'
  const meanings = [...meaningsOf(columns), ratio].map(text => `- ${text}`).join('\n')
  return [about(run), table, `${meanings}\n`].join('\n\n')
}

function about({ date, machine, options, rivals, trials }: Results): string {
  const busy = trials.filter(({ busy = 0 }) => busy > 0.05).length
  const versions = new Set(
    rivals.flatMap(({ kind, name, version }) =>
      version ? [`${kind === 'baton' ? 'redis-baton' : name} ${version}`] : [],
    ),
  )
  return [
    `${date.slice(0, 10)}: ${machine.cores} cores (${machine.cpu}), ${machine.system}, Node ${machine.node}, ${machine.redis};`,
    `${options.rounds} rounds of ${options.seconds} s, cores ${machine.warmCores ? '' : 'not '}kept awake. In ${busy} of ${trials.length}`,
    `trials, other programs used more than 5 % of the cores. Versions: ${[...versions].join(', ')}.`,
  ].join(' ')
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  for (const file of names) writeFileSync(new URL(file, root), written(file))
}

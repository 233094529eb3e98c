/**
 * Writes an HTML report of each raw run that docs/benchmarks.md links to, for the site.
 *
 *   npx tsx benchmarks/report/reports.ts site/.vitepress/dist/reports
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Results } from '../contract.ts'
import { htmlReport } from './html.ts'
import { attainments } from './verdict.ts'

const root = new URL('../../', import.meta.url)

/** Returns the names of the runs whose reports the page links to. */
export function reported(): string[] {
  const page = readFileSync(new URL('docs/benchmarks.md', root), 'utf8')
  return [...page.matchAll(/\/reports\/([\w-]+)\.html\)/g)].map(([, name]) => name!)
}

export function report(name: string): string {
  const run = JSON.parse(readFileSync(new URL(`benchmarks/results/${name}.json`, root), 'utf8')) as Results
  return htmlReport({ ...run, goals: attainments(run) })
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const out = process.argv[2]!
  mkdirSync(out, { recursive: true })
  for (const name of reported()) writeFileSync(join(out, `${name}.html`), report(name))
}

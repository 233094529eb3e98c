/**
 * Writes the tables of docs/scale.md, and the figures computed from them, from the raw run in
 * benchmarks/results/scale.json, so that every figure comes from a run. A test compares the page with the run.
 *
 *   npx tsx scripts/scale-page/main.ts
 */
import { readFileSync, writeFileSync } from 'node:fs'
import type { Scale } from '../scale/figures.ts'
import { parts } from './parts.ts'

const root = new URL('../../', import.meta.url)
const page = new URL('docs/scale.md', root)
const marked = /(<!-- scale, ([\w ]+) -->\n)[\s\S]*?(<!-- end -->)/g

export function present(): string {
  return readFileSync(page, 'utf8')
}

/** Returns the page with the tables and figures of `scale`. By default, that is the stored run. */
export function written(scale: Scale = read(), text = present()): string {
  return text.replace(marked, (_, begin: string, name: string, end: string) => {
    const part = parts[name]
    if (!part) throw new Error(`the page has a mark '${name}', which nothing is written for`)
    return `${begin}\n${part(scale)}\n\n${end}`
  })
}

/** Returns the names in the page's `<!-- scale, … -->` comments, each of which marks one generated part. */
export function marks(): string[] {
  return [...present().matchAll(marked)].map(([, , name]) => name!)
}

export function read(): Scale {
  return JSON.parse(readFileSync(new URL('benchmarks/results/scale.json', root), 'utf8'))
}

if (process.argv[1] === new URL(import.meta.url).pathname) writeFileSync(page, written())

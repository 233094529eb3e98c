/** All files that are written from the doc comments, and what they have to hold. */
import { readFile } from 'node:fs/promises'
import GithubSlugger from 'github-slugger'
import { description, inOneLine, type Link, table } from './comment.ts'
import { type Entry, extract } from './extract.ts'
import { missing } from './missing.ts'
import { byKind, heading, origin, pageOf } from './page.ts'

const root = new URL('../../', import.meta.url)

export interface Reference {
  /** By their paths in the project. */
  readonly files: ReadonlyMap<string, string>
  /** What doc comments lack, or say in a way that cannot be read. */
  readonly complaints: readonly string[]
}

/** The reference as the sources have it now. */
export async function reference(): Promise<Reference> {
  const entries = await extract()
  const files = new Map<string, string>()
  for (const entry of entries) {
    files.set(`docs/api/${entry.file}.md`, `${pageOf(entry, linkFrom(entries, entry))}\n`)
    files.set(`test/docs/package/surface/${entry.file}.api.md`, entry.report)
  }
  files.set('docs/api/README.md', index(entries))
  return { files, complaints: entries.flatMap(entry => [...entry.complaints, ...missing(entry)]) }
}

/** The files that are not as they have to be, by their paths. */
export async function stale({ files }: Reference): Promise<string[]> {
  const differs = async ([path, text]: [string, string]) => {
    const present = await readFile(new URL(path, root), 'utf8').catch(() => undefined)
    return present === text ? [] : [path]
  }
  return (await Promise.all([...files].map(differs))).flat()
}

/** Links to items of the same page, or of another entry's, where this one does not export them itself. */
function linkFrom(entries: readonly Entry[], here?: Entry): Link {
  const places = new Map<string, string>()
  for (const entry of [...entries.filter(entry => entry !== here).reverse(), ...(here ? [here] : [])]) {
    const slugger = new GithubSlugger()
    const page = entry === here ? '' : `${entry.file}.md`
    for (const [, items] of byKind(entry)) {
      for (const item of items) places.set(item.displayName, `${page}#${slugger.slug(heading(item))}`)
    }
  }
  return name => (places.has(name) ? `[\`${name}\`](${places.get(name)})` : name)
}

function index(entries: readonly Entry[]): string {
  const link = linkFrom(entries)
  const parts = entries.flatMap(entry => [
    `## [\`${entry.name}\`](${entry.file}.md)`,
    ...byKind(entry).flatMap(([title, items]) => {
      if (items.length === 0) return []
      const rows = items.map(item => [
        link(item.displayName),
        inOneLine(firstSentence(description(item, name => name))),
      ])
      return [table([title, 'meaning'], rows)]
    }),
  ])
  return `${['# API reference', origin, ...parts].join('\n\n')}\n`
}

function firstSentence(text: string): string {
  return /^[\s\S]*?[.:](?=\s|$)/.exec(text)?.[0].replace(/:$/, '.') ?? text
}

/** Compares the committed reports of the public surface with the present sources. */
import { readFile } from 'node:fs/promises'
import { extract } from './extract.ts'
import { missing } from './missing.ts'

const root = new URL('../../', import.meta.url)

export interface Surface {
  /** For each entry, the report of its bare signatures. The key is the report's path in the project. */
  readonly reports: ReadonlyMap<string, string>
  /** What doc comments lack, and comments that cannot be parsed. */
  readonly complaints: readonly string[]
}

export async function surface(): Promise<Surface> {
  const entries = await extract()
  return {
    reports: new Map(entries.map(({ file, report }) => [`test/docs/package/surface/${file}.api.md`, report])),
    complaints: entries.flatMap(entry => [...entry.complaints, ...missing(entry)]),
  }
}

/** Returns the paths of the reports that are out of date. */
export async function stale({ reports }: Surface): Promise<string[]> {
  const differs = async ([path, text]: [string, string]) => {
    const present = await readFile(new URL(path, root), 'utf8').catch(() => undefined)
    return present === text ? [] : [path]
  }
  return (await Promise.all([...reports].map(differs))).flat()
}

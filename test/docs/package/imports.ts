/**
 * Finds the imports between source files, including imports of types. Compilers and bundlers drop imports of types, but
 * the rules of layers.test.ts apply to them as well.
 */
import { readdir, readFile } from 'node:fs/promises'
import { posix } from 'node:path'

export const root = new URL('../../../', import.meta.url)

/** The folders that are compiled and published: the library, and the programs that use it. */
export const folders = ['src', 'cli', 'benchmarks', 'local-redis']

/** Matches `import … from 'x'`, `export … from 'x'`, `import 'x'`, and `import('x')`. */
const statement =
  /^\s*(?:import|export)\b[^'"`;=]*?\bfrom\s*['"](.+?)['"]|^\s*import\s*['"](.+?)['"]|\bimport\(\s*['"](.+?)['"]/gm

/** Returns the names in the import statements of a source text, exactly as they are written. */
export function importsIn(source: string): string[] {
  return [...source.matchAll(statement)].map(([, from, bare, dynamic]) => (from ?? bare ?? dynamic) as string)
}

/**
 * Returns the imports of each file. A file of the project is given by its path, such as `src/key/key.ts`, and a
 * package by its name.
 */
export async function importGraph(): Promise<ReadonlyMap<string, readonly string[]>> {
  const files = (await Promise.all(folders.map(sourcesIn))).flat()
  const read = async (file: string): Promise<[string, string[]]> => {
    const specifiers = importsIn(await readFile(new URL(file, root), 'utf8'))
    return [file, specifiers.map(name => (name.startsWith('.') ? posix.join(posix.dirname(file), name) : name))]
  }
  return new Map(await Promise.all(files.map(read)))
}

async function sourcesIn(folder: string): Promise<string[]> {
  const names = await readdir(new URL(`${folder}/`, root), { recursive: true })
  return names.filter(name => name.endsWith('.ts')).map(name => `${folder}/${name.replaceAll('\\', '/')}`)
}

/**
 * Follows the imports of all files in the folder or file `from`. Returns everything that these files import, directly
 * or indirectly, each with the chain of imports that leads to it.
 */
export function reachable(graph: ReadonlyMap<string, readonly string[]>, from: string): Map<string, string> {
  const ways = new Map([...graph.keys()].filter(file => file.startsWith(from)).map(file => [file, file]))
  for (const [file, way] of ways) {
    for (const imported of graph.get(file) ?? []) {
      if (!ways.has(imported)) ways.set(imported, `${way} → ${imported}`)
    }
  }
  return ways
}

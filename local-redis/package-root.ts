import { createRequire } from 'node:module'
import { extname } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const manifest = createRequire(import.meta.url).resolve('redis-baton/package.json')

/** The folder of package.json. A source and what is compiled from it are not at the same depth below it. */
export const packageRoot = new URL('./', pathToFileURL(manifest))

/** What Node needs before a program of this package: from source, something that reads TypeScript. */
export const loader: readonly string[] = extname(import.meta.url) === '.ts' ? ['--import', 'tsx'] : []

/** A program of this package that runs in a process of its own, by the path of its source without `.ts`. */
export function programFile(path: string): string {
  const file = loader.length > 0 ? `${path}.ts` : `dist/${path}.js`
  return fileURLToPath(new URL(file, packageRoot))
}

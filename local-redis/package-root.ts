import { createRequire } from 'node:module'
import { extname } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const manifest = createRequire(import.meta.url).resolve('redis-baton/package.json')

/**
 * The folder of package.json. It cannot be found by a relative path, because this source and its compiled file are at
 * different depths below it.
 */
export const packageRoot = new URL('./', pathToFileURL(manifest))

/**
 * The Node arguments that a program of this package needs. A program that runs from source needs a loader for
 * TypeScript.
 */
export const loader: readonly string[] = extname(import.meta.url) === '.ts' ? ['--import', 'tsx'] : []

/** Returns the file of a program that runs in its own process. `path` is its source without `.ts`. */
export function programFile(path: string): string {
  const file = loader.length > 0 ? `${path}.ts` : `dist/${path}.js`
  return fileURLToPath(new URL(file, packageRoot))
}

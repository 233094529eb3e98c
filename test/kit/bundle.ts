/**
 * Bundles programs of the tests. A process that loads a bundle starts in a quarter of the processor time that it takes
 * to compile the program's modules one by one.
 */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildSync } from 'esbuild'

const root = fileURLToPath(new URL('../../', import.meta.url))

/**
 * Makes a folder for bundles, which is removed when this process ends. It is in the project, because the bundles import
 * the packages that are installed there.
 */
export function bundleFolder(): string {
  const folder = join(root, '.cache', 'bundles')
  mkdirSync(folder, { recursive: true })
  const made = mkdtempSync(join(folder, 'run-'))
  process.once('exit', () => rmSync(made, { recursive: true, force: true }))
  return made
}

/** Returns the path of the bundle of a TypeScript file. Makes the bundle unless the folder has it. */
export function bundled(file: URL, folder: string): string {
  const source = fileURLToPath(file)
  const bundle = join(folder, `${basename(source, '.ts')}.mjs`)
  if (existsSync(bundle)) return bundle
  // Other processes may do the same at this moment. None of them may load a part of a bundle.
  const made = `${bundle}.${process.pid}`
  buildSync({
    entryPoints: [source],
    outfile: made,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    // package.json says that no file has side effects. That is true of the package, but not of the tests.
    ignoreAnnotations: true,
    // src/redis/ioredis.cjs requires ioredis.
    banner: { js: `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)` },
    sourcemap: 'inline',
    absWorkingDir: root,
  })
  renameSync(made, bundle)
  return bundle
}

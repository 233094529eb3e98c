/**
 * Builds the library's type declarations: one file per entry, and shared files for the declarations that several
 * entries use. First the compiler emits one file per source. These files cannot be published as they are, because their
 * imports end in `.ts`, which users could not resolve.
 */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { rollup } from 'rollup'
import { dts } from 'rollup-plugin-dts'
import { entries, root } from './entries.ts'

export async function declarations(): Promise<void> {
  await mkdir(join(root, '.cache'), { recursive: true })
  const folder = await mkdtemp(join(root, '.cache', 'declarations-'))
  try {
    await emit(folder)
    const input = Object.fromEntries(entries.map(({ file, source }) => [file, emitted(folder, source)]))
    const bundle = await rollup({ input, plugins: [dts()] })
    for (const extension of ['d.ts', 'd.cts']) {
      await bundle.write({
        dir: join(root, 'dist'),
        format: 'es',
        entryFileNames: `[name].${extension}`,
        // `name` ends in `.d`, because the input files end in `.d.ts`. This `.d` is removed, because `extension` has
        // it, too.
        chunkFileNames: ({ name }) => `shared/${name.replace(/\.d$/, '')}.${extension}`,
      })
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Writes the compiler's output for each source into `folder`, side by side. */
export async function emit(folder: string): Promise<void> {
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const args = [tsc, '-p', join(root, 'tsconfig.build.json'), '--outDir', folder]
  await promisify(execFile)(process.execPath, args).catch(({ stdout }) => {
    throw new Error(stdout)
  })
}

export function emitted(folder: string, source: string): string {
  return join(folder, source.replace(/^src\//, '').replace(/\.ts$/, '.d.ts'))
}

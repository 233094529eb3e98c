/** The library, twice: as ES modules, and as CommonJS for those whose loader knows nothing else (Jest has its own). */
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { entries, isInstalled, root } from './entries.ts'

/** There is no CommonJS of them, and a loader of its own cannot `require` an ES module: the CommonJS build contains them. */
const esOnly = ['p-timeout']

const input = Object.fromEntries(entries.map(({ file, source }) => [file, join(root, source)]))

/** Returns the files that have gone into it. */
export async function library(): Promise<string[]> {
  const files = await Promise.all([
    build('es', 'js', isInstalled),
    build('cjs', 'cjs', name => isInstalled(name) && !esOnly.includes(name)),
  ])
  return files.flat()
}

async function build(format: 'es' | 'cjs', extension: string, external: (name: string) => boolean): Promise<string[]> {
  const bundle = await rolldown({ input, external, platform: 'node', transform: { target: 'node20.19' } })
  const { output } = await bundle.write({
    dir: join(root, 'dist'),
    format,
    sourcemap: true,
    // The text of the sources once: twice would be a tenth of all that an installation brings.
    sourcemapExcludeSources: format === 'cjs',
    // What several entries have in common is in files of its own, so that a class is one class in all of them.
    entryFileNames: `[name].${extension}`,
    comments: { legal: false, jsdoc: false },
    chunkFileNames: `shared/[name].${extension}`,
  })
  return output.flatMap(chunk => (chunk.type === 'chunk' ? chunk.moduleIds : []))
}

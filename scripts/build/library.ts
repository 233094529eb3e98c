/** The library, twice: as ES modules, and as CommonJS for those whose loader knows nothing else (Jest has its own). */
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Plugin, rolldown } from 'rolldown'
import { entries, isInstalled, root } from './entries.ts'

/** There is no CommonJS of them, and a loader of its own cannot `require` an ES module: the CommonJS build contains them. */
const esOnly = ['p-timeout']

/**
 * What loads ioredis on demand stays a CommonJS file of its own among the ES modules: a bundler that a user has sees its `require`,
 * and puts ioredis into the bundle. It would not see one that is made from `import.meta.url`, which a bundle may not have.
 */
const loader = 'ioredis.cjs'
const apart: Plugin = {
  name: 'loader-apart',
  resolveId: source => (source === `./${loader}` ? { id: join(root, 'dist', loader), external: true } : undefined),
}

const input = Object.fromEntries(entries.map(({ file, source }) => [file, join(root, source)]))

/** Returns the files that have gone into it. */
export async function library(): Promise<string[]> {
  const files = await Promise.all([
    build('es', 'js', isInstalled),
    build('cjs', 'cjs', name => isInstalled(name) && !esOnly.includes(name)),
  ])
  await copyFile(join(root, 'src/redis', loader), join(root, 'dist', loader))
  return files.flat()
}

async function build(format: 'es' | 'cjs', extension: string, external: (name: string) => boolean): Promise<string[]> {
  const plugins = format === 'es' ? [apart] : []
  const bundle = await rolldown({ input, external, plugins, platform: 'node', transform: { target: 'node20.19' } })
  const { output } = await bundle.write({
    dir: join(root, 'dist'),
    format,
    // Once: for both it would be a sixth of all that an installation brings.
    sourcemap: format === 'es',
    // What several entries have in common is in files of its own, so that a class is one class in all of them.
    entryFileNames: `[name].${extension}`,
    comments: { legal: false, jsdoc: false },
    chunkFileNames: `shared/[name].${extension}`,
  })
  return output.flatMap(chunk => (chunk.type === 'chunk' ? chunk.moduleIds : []))
}

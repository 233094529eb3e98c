/**
 * Builds the library in two forms: as ES modules, and as CommonJS for loaders that cannot load ES modules, such as
 * Jest's.
 */
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { type Plugin, rolldown } from 'rolldown'
import { entries, isInstalled, root } from './entries.ts'

/**
 * These packages have no CommonJS form, and some loaders cannot `require` an ES module. So the CommonJS build contains
 * them.
 */
const esOnly = ['p-timeout']

/**
 * The file that loads ioredis on demand stays a separate CommonJS file among the ES modules. So a user's bundler sees
 * the `require` in this file, and includes ioredis. An ES module would have to create its `require` from
 * `import.meta.url`. The bundler would not see such a `require`, and some bundles have no `import.meta.url`.
 */
const loader = 'ioredis.cjs'
const apart: Plugin = {
  name: 'loader-apart',
  resolveId: source => (source === `./${loader}` ? { id: join(root, 'dist', loader), external: true } : undefined),
}

const input = Object.fromEntries(entries.map(({ file, source }) => [file, join(root, source)]))

/** Builds the library, and returns the files that were bundled. */
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
    // Only ES modules get source maps. The source maps of both forms together would be a sixth of the installed size.
    sourcemap: format === 'es',
    // Code that several entries share is in files of its own, so that a class is the same class in all entries.
    entryFileNames: `[name].${extension}`,
    comments: { legal: false, jsdoc: false },
    chunkFileNames: `shared/[name].${extension}`,
  })
  const maps = output.filter(({ fileName }) => fileName.endsWith('.map'))
  await Promise.all(maps.map(({ fileName }) => leaveOutText(join(root, 'dist', fileName))))
  return output.flatMap(chunk => (chunk.type === 'chunk' ? chunk.moduleIds : []))
}

/**
 * Leaves the sources' text out of a source map: with it, the maps would be a fifth of the installed size. Instead the map
 * says where the text of this version is published, so stack traces name the lines, and debuggers can fetch the text.
 */
async function leaveOutText(path: string): Promise<void> {
  const map = JSON.parse(await readFile(path, 'utf8'))
  const { version, homepage } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  map.sourceRoot = `${homepage.replace('github.com', 'raw.githubusercontent.com').replace(/#.*/, '')}/v${version}/`
  map.sources = map.sources.map((source: string) => relative(root, resolve(dirname(path), source)))
  delete map.sourcesContent
  await writeFile(path, JSON.stringify(map))
}

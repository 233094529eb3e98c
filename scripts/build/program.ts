/**
 * The program `baton` and the programs that it starts. Each program is bundled with the packages that it uses, except
 * this library, and those that are installed with it anyway. So users of the library do not get the command line's packages in
 * their node_modules.
 */
import { join } from 'node:path'
import { type Plugin, rolldown } from 'rolldown'
import { isInstalled, manifest, programs, root } from './entries.ts'

const dist = join(root, 'dist')
const transform = { target: 'node20.19' }

/** The programs import the library by the package's own name, so that it is in the package only once. */
const published: Plugin = {
  name: 'published-library',
  resolveId: source => (source.endsWith('/src/index.ts') ? { id: manifest.name, external: true } : undefined),
}

/** Packages that are not bundled. They are used if they are installed beside this package. */
const optional = ['testcontainers']

/** Builds the programs, and returns the files that were bundled. */
export async function program(): Promise<string[]> {
  const input = Object.fromEntries(programs.map(name => [name, join(root, `${name}.ts`)]))
  const external = (name: string) => isInstalled(name) || optional.includes(name)
  const bundle = await rolldown({ input, external, plugins: [published], platform: 'node', transform })
  const { output } = await bundle.write({
    dir: dist,
    format: 'es',
    entryFileNames: '[name].js',
    // Shared parts are named after their sources. `files` in package.json uses these names to leave parts out of the
    // package, if only a checkout of the project needs them.
    chunkFileNames: 'cli/parts/[name].js',
    minify: true,
  })
  return output.flatMap(chunk => (chunk.type === 'chunk' ? chunk.moduleIds : []))
}

/** Builds the script that the page of `baton ui` runs in a browser. */
export async function page(): Promise<string[]> {
  const bundle = await rolldown({
    input: join(root, 'cli/ui/page/main.ts'),
    platform: 'browser',
    transform: { target: 'es2022' },
  })
  const { output } = await bundle.write({ file: join(dist, 'cli/ui/page.js'), format: 'es', minify: true })
  return output.flatMap(chunk => (chunk.type === 'chunk' ? chunk.moduleIds : []))
}

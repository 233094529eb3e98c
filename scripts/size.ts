/**
 * Measures how many bytes the library adds to a program that bundles it: minified, with and without compression.
 * Dependencies and the command line are not included. Prints a table, and the largest source files.
 *
 *   npm run size
 */
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { markdownTable } from 'markdown-table'

const root = fileURLToPath(new URL('../', import.meta.url))

export interface Size {
  readonly minified: number
  readonly gzipped: number
  /** The bytes that each source file contributes to the minified program. */
  readonly files: ReadonlyMap<string, number>
}

/**
 * Bundles the given source text, and measures the result. The text may import from `./src/`. Imported packages are not
 * included in the size.
 */
export async function sizeOf(program: string): Promise<Size> {
  const { outputFiles, metafile } = await build({
    stdin: { contents: program, resolveDir: root, sourcefile: 'program.ts' },
    absWorkingDir: root,
    bundle: true,
    minify: true,
    platform: 'node',
    target: 'node20.19',
    format: 'esm',
    packages: 'external',
    legalComments: 'none',
    tsconfigRaw: {},
    write: false,
    metafile: true,
    logLevel: 'silent',
  })
  const text = outputFiles[0]!.contents
  const [{ inputs }] = Object.values(metafile.outputs) as [(typeof metafile.outputs)[string]]
  const files = new Map(Object.entries(inputs).map(([file, { bytesInOutput }]) => [file, bytesInOutput]))
  return { minified: text.length, gzipped: gzipSync(text).length, files }
}

/** The measured programs: one imports everything from an entry of the package, and one imports a single class. */
export const programs = {
  'redis-baton': `export * from './src/index.ts'`,
  'redis-baton/memory': `export * from './src/memory/index.ts'`,
  'redis-baton/opentelemetry': `export * from './src/opentelemetry/index.ts'`,
  'redis-baton/nestjs': `export * from './src/nestjs/index.ts'`,
  'redis-baton, LockTimeoutError alone': `export { LockTimeoutError } from './src/index.ts'`,
} as const

if (process.argv[1] === fileURLToPath(import.meta.url)) await print()

async function print(): Promise<void> {
  const rows: string[][] = []
  for (const [name, program] of Object.entries(programs)) {
    const { minified, gzipped } = await sizeOf(program)
    rows.push([name, shown(minified), shown(gzipped)])
  }
  const { files } = await sizeOf(programs['redis-baton'])
  const parts = new Map<string, number>()
  for (const [file, bytes] of files) {
    const part = file.endsWith('scripts.generated.ts') ? 'lua/, as text' : (/^src\/\w+\//.exec(file)?.[0] ?? 'src/')
    parts.set(part, (parts.get(part) ?? 0) + bytes)
  }
  const heaviest = [...parts].sort(([, a], [, b]) => b - a)
  const align = ['l', 'r', 'r']
  console.log(markdownTable([['import', 'minified, bytes', 'gzipped, bytes'], ...rows], { align }))
  console.log()
  console.log(
    markdownTable([['of redis-baton', 'bytes'], ...heaviest.map(([part, bytes]) => [part, shown(bytes)])], { align }),
  )
}

function shown(bytes: number): string {
  return bytes.toLocaleString('en')
}

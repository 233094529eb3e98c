import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { type BuildOptions, build } from 'esbuild'
import { describe, expect, test } from 'vitest'
import { root } from './imports.ts'

async function bundle(entry: string, options: BuildOptions = {}) {
  const { metafile, outputFiles } = await build({
    ...(!options.stdin && { entryPoints: [fileURLToPath(new URL(entry, root))] }),
    absWorkingDir: fileURLToPath(root),
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    write: false,
    logLevel: 'silent',
    // Because this tsconfig is empty, the bundler finds the package through its `exports`, as in a user's project, and
    // not through a path mapping of this project.
    tsconfigRaw: {},
    ...options,
    metafile: true,
  })
  const external = Object.values(metafile.outputs).flatMap(({ imports }) => imports.map(({ path }) => path))
  const packages = new Set(external.filter(path => !path.startsWith('node:')))
  return { inputs: Object.keys(metafile.inputs), packages, text: outputFiles?.[0]?.text ?? '' }
}

describe('the library', () => {
  test('needs three packages, which npm installs with it, and none that only the command line uses', async () => {
    const { inputs, packages } = await bundle('src/index.ts', { packages: 'external' })
    expect([...packages].sort()).toEqual(['eventemitter3', 'ioredis', 'p-timeout'])
    const { dependencies, peerDependencies } = JSON.parse(await readFile(new URL('package.json', root), 'utf8'))
    expect(Object.keys(dependencies)).toEqual(['eventemitter3', 'p-timeout'])
    expect(peerDependencies).toMatchObject({ ioredis: '^5.4 || ^6' })

    expect(inputs).toContain('src/client.ts')
    expect(inputs.filter(file => !file.startsWith('src/'))).toEqual([])
  })
})

describe('a client that uses one kind of lock', () => {
  const from = {
    mutex: `import { mutex as kind } from './src/kinds/mutex/mutex.ts'`,
    flag: `import { flag as kind } from './test/kit/flag.ts'`,
  }
  /** For each kind of lock, a part of a line from one of the kind's scripts. */
  const lines = { mutex: `redis.call('ZPOPMIN'`, flag: `redis.call('INCR', KEYS[2])` }

  test.each([
    ['mutex', 'flag'],
    ['flag', 'mutex'],
  ] as const)('the %s: contains no script of the %s', async (used, other) => {
    const contents = [
      `import { Session } from './src/session.ts'`,
      from[used],
      `export const locksOf = (...parts) => new Session(...parts).locks(kind)`,
    ].join('\n')
    const { text } = await bundle('', { stdin: { contents, resolveDir: fileURLToPath(root) }, packages: 'external' })
    expect(text).toContain(lines[used])
    expect(text).not.toContain(lines[other])
  })
})

/** Tests the sources of the page to play in (site/play), without a browser. */
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { type BuildFailure, build, type Plugin } from 'esbuild'
import { expect, test } from 'vitest'
import { standIns } from '../../site/.vitepress/browser.ts'
import { emptyFolder } from '../kit/temp.ts'
import { root } from './page.ts'

const inTheirPlace: Plugin = {
  name: standIns.name,
  setup: ({ onResolve }) =>
    onResolve({ filter: /./ }, ({ path, importer }) => {
      const standIn = standIns.resolveId(path, importer)
      return typeof standIn === 'string' ? { path: standIn } : undefined
    }),
}

// This test fails if `export const randomFillSync` becomes `export const randomFill` in site/play/node.ts.
test('in a browser, there is a stand-in for all that the client uses of Node', async () => {
  const options = {
    bundle: true,
    write: false,
    outdir: '.',
    format: 'esm',
    packages: 'external',
    logLevel: 'silent',
  } as const
  const { errors } = await build({ entryPoints: ['site/play/main.ts'], plugins: [inTheirPlace], ...options }).catch(
    (failure: BuildFailure) => failure,
  )
  expect(errors.map(({ text }) => text)).toEqual([])
})

// A checkout may be in a folder of any name. This test fails if `relative(root, importer)` becomes `'src'` in
// site/.vitepress/browser.ts: the page's own sources get stand-ins, too.
test.each(['', 'src', 'test', 'src/test'])(
  'only what the sources import has a stand-in, in the folder "%s"',
  async name => {
    const checkout = join(await emptyFolder(), name)
    const copy = join(checkout, 'site/.vitepress/browser.ts')
    await cp(new URL('site/.vitepress/browser.ts', root), copy, { recursive: true })
    const { standIns }: typeof import('../../site/.vitepress/browser.ts') = await import(copy)
    const stub = (importer: string) => standIns.resolveId('node:crypto', join(checkout, importer))
    expect(['src/clock.ts', 'test/simulation/world.ts'].map(stub)).toEqual(
      Array(2).fill(join(checkout, 'site/play/node.ts')),
    )
    expect(['site/play/node.ts', 'site/.vitepress/theme/index.ts', 'cli/main.ts'].map(stub)).toEqual(
      Array(3).fill(undefined),
    )
  },
)

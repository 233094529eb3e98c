/** Tests the sources of the page to play in (site/play), without a browser. */
import { type BuildFailure, build, type Plugin } from 'esbuild'
import { expect, test } from 'vitest'
import { standIns } from '../../site/.vitepress/browser.ts'

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

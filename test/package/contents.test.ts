import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { run } from '../examples/program.ts'
import { root } from './imports.ts'

interface Packed {
  readonly files: { readonly path: string }[]
}

test('the package holds the compiled library, its types, its scripts and its words, and no sources or tests', async () => {
  const { code, output, errors } = await run('npm', ['pack', '--dry-run', '--json'], { cwd: root })
  expect(code, errors).toBe(0)
  const [packed] = JSON.parse(output) as [Packed]
  const paths = packed.files.map(({ path }) => path)

  const { bin } = JSON.parse(await readFile(new URL('package.json', root), 'utf8')) as { bin: Record<string, string> }
  const programs = Object.values(bin).map(path => path.replace('./', ''))
  expect(paths).toEqual(
    expect.arrayContaining([
      'package.json',
      'README.md',
      'dist/index.js',
      'dist/index.d.ts',
      'lua/acquire.lua',
      ...programs,
    ]),
  )
  const expected =
    /^(dist|lua|data|docs)\/|^benchmarks\/redisson\/(pom\.xml|src\/)|^(package\.json|README\.md|LICENSE|CHANGELOG\.md)$/
  expect(paths.filter(path => !expected.test(path))).toEqual([])
  expect(paths.filter(path => path.endsWith('.ts') && !path.endsWith('.d.ts'))).toEqual([])
  expect(paths.filter(path => path.includes('.test.'))).toEqual([])
}, 70_000)

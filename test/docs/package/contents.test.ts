import { readFile } from 'node:fs/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { run } from '../../kit/program.ts'
import { root } from './imports.ts'

interface Packed {
  readonly files: { readonly path: string }[]
}

interface Manifest {
  readonly bin: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>
  readonly scripts: Readonly<Record<string, string>>
  readonly engines: { readonly node: string }
  readonly repository: { readonly url: string }
  readonly homepage: string
  readonly bugs: string
  readonly publishConfig: unknown
}

let manifest: Manifest

beforeAll(async () => {
  manifest = JSON.parse(await readFile(new URL('package.json', root), 'utf8'))
})

test('the package holds the compiled library, its types, its scripts and its words, and no sources or tests', async () => {
  const { code, output, errors } = await run('npm', ['pack', '--dry-run', '--json'], { cwd: root })
  expect(code, errors).toBe(0)
  const [packed] = JSON.parse(output) as [Packed]
  const paths = packed.files.map(({ path }) => path)

  const programs = Object.values(manifest.bin)
  const entries = Object.values(manifest.exports).flatMap(entry =>
    typeof entry === 'string' ? [] : Object.values(entry),
  )
  const promised = [...programs, ...entries].map(path => path.replace('./', ''))
  expect(promised).toContain('dist/src/index.d.ts')
  expect(paths).toEqual(
    expect.arrayContaining(['package.json', 'README.md', 'lua/mutex/acquire.lua', 'docs/guarantees.md', ...promised]),
  )
  const expected =
    /^(dist|lua|data|docs)\/|^benchmarks\/redisson\/(pom\.xml|src\/)|^(package\.json|README\.md|LICENSE|CHANGELOG\.md)$/
  expect(paths.filter(path => !expected.test(path))).toEqual([])
  expect(paths.filter(path => path.endsWith('.ts') && !path.endsWith('.d.ts'))).toEqual([])
  expect(paths.filter(path => path.includes('.test.'))).toEqual([])
  // The program is run, not imported.
  expect(paths.filter(path => /^dist\/(benchmarks|cli|local-redis)\/.*\.d\.ts$/.test(path))).toEqual([])
}, 70_000)

describe('package.json', () => {
  test('runs nothing at installation', () => {
    const run = ['preinstall', 'install', 'postinstall', 'prepare', 'preprepare', 'postprepare']
    expect(Object.keys(manifest.scripts).filter(name => run.includes(name))).toEqual([])
  })

  test('says where the sources are, for the provenance of what is published', () => {
    const { repository, homepage, bugs, publishConfig, engines } = manifest
    expect(repository.url).toMatch(/^git\+https:\/\/.+\.git$/)
    const home = repository.url.slice('git+'.length, -'.git'.length)
    expect(homepage).toBe(`${home}#readme`)
    expect(bugs).toBe(`${home}/issues`)
    expect(publishConfig).toEqual({ access: 'public', provenance: true })
    expect(engines).toEqual({ node: '>=20.19' })
  })
})

test('no file names the host of a package registry: where packages come from is for who installs to say', async () => {
  const { code, output, errors } = await run('git', ['ls-files', '-z'], { cwd: root })
  expect(code, errors).toBe(0)
  const files = output.split('\0').filter(Boolean)
  expect(files).toContain('package-lock.json')
  // Put together, so that this file does not name them.
  const hosts = ['registry npmjs', 'www npmjs', 'registry yarnpkg'].map(words => words.replace(' ', '.'))
  const naming = async (file: string) => {
    // A file that has been removed and not committed yet is listed, too.
    const text = await readFile(new URL(file, root), 'utf8').catch(() => '')
    return hosts.some(host => text.includes(host)) ? [file] : []
  }
  expect((await Promise.all(files.map(naming))).flat()).toEqual([])
})

import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { run } from '../../kit/program.ts'
import { root } from './imports.ts'

interface Packed {
  readonly files: { readonly path: string }[]
}

interface Manifest {
  readonly bin: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, Readonly<Record<string, string>>>>>>
  readonly scripts: Readonly<Record<string, string>>
  readonly engines: { readonly node: string }
  readonly repository: { readonly url: string }
  readonly homepage: string
  readonly bugs: string
  readonly publishConfig: unknown
}

/** What package-lock.json says of a package. */
interface Locked {
  readonly engines?: { readonly node?: string }
  readonly deprecated?: string
  readonly hasInstallScript?: boolean
  readonly optional?: boolean
}

let manifest: Manifest

beforeAll(async () => {
  manifest = JSON.parse(await readFile(new URL('package.json', root), 'utf8'))
})

test('the package contains the library, the program, and its documents', async () => {
  const { code, output, errors } = await run('npm', ['pack', '--dry-run', '--json'], { cwd: root })
  expect(code, errors).toBe(0)
  const [packed] = JSON.parse(output) as [Packed]
  const paths = packed.files.map(({ path }) => path)

  const programs = Object.values(manifest.bin)
  const entries = Object.values(manifest.exports).flatMap(entry =>
    typeof entry === 'string' ? [] : Object.values(entry).flatMap(files => Object.values(files)),
  )
  const promised = [...programs, ...entries].map(path => path.replace('./', ''))
  expect(promised).toEqual(expect.arrayContaining(['dist/index.js', 'dist/index.d.cts', 'dist/opentelemetry.cjs']))
  expect(paths).toEqual(
    expect.arrayContaining([
      'package.json',
      'LICENSE',
      'dist/third-party-notices.txt',
      'dist/opentelemetry.js.map',
      ...promised,
    ]),
  )
  const expected =
    /^(dist|data)\/|^examples\/prometheus\/(alerts\.yml|grafana-dashboard\.json)$|^(package\.json|README\.md|LICENSE|CHANGELOG\.md)$/
  expect(paths.filter(path => !expected.test(path))).toEqual([])
  expect(paths.filter(path => path.endsWith('.ts') && !path.endsWith('.d.ts'))).toEqual([])
  // The published package can start an existing server, but cannot download one. In a clone of the repository, the
  // build also makes debian.js, which can download a server. debian.js is not published.
  expect(existsSync(new URL('dist/cli/parts/debian.js', root))).toBe(true)
  const texts = await Promise.all(paths.map(path => readFile(new URL(path, root), 'utf8')))
  expect(paths.filter((_, i) => /apt-get (update|install)|'apt-get'|"apt-get"|`apt-get`/.test(texts[i]!))).toEqual([])
}, 70_000)

describe('package.json', () => {
  test('runs nothing at installation', () => {
    const run = ['preinstall', 'install', 'postinstall', 'prepare', 'preprepare', 'postprepare']
    expect(Object.keys(manifest.scripts).filter(name => run.includes(name))).toEqual([])
  })

  test('states where the sources are, for the provenance of the published package', () => {
    const { repository, homepage, bugs, publishConfig, engines } = manifest
    expect(repository.url).toMatch(/^git\+https:\/\/.+\.git$/)
    const home = repository.url.slice('git+'.length, -'.git'.length)
    expect(homepage).toBe(`${home}#readme`)
    expect(bugs).toBe(`${home}/issues`)
    expect(publishConfig).toEqual({ access: 'public', provenance: true })
    expect(engines).toEqual({ node: '>=20.19' })
  })
})

/**
 * If this fails because of `engines`: a package asks for a newer Node than the oldest that this project supports.
 * Override it by an older version. redlock-universal has none, but works on Node 20, as its tests show: its entry in
 * package-lock.json has no `engines`, so that npm does not warn.
 */
test.each(['', 'site/'])('npm ci in ./%s warns of nothing', async folder => {
  const read = async (name: string) => JSON.parse(await readFile(new URL(folder + name, root), 'utf8'))
  const { allowScripts } = (await read('package.json')) as { allowScripts: Readonly<Record<string, boolean>> }
  const { packages } = (await read('package-lock.json')) as { packages: Readonly<Record<string, Locked>> }
  const locked = Object.entries(packages).map(([path, entry]) => ({
    name: path.replace(/^.*node_modules\//, ''),
    ...entry,
  }))
  expect(locked.filter(({ hasInstallScript, name }) => hasInstallScript && !(name in allowScripts))).toEqual([])
  expect(locked.filter(({ deprecated }) => deprecated)).toEqual([])
  const newer = locked.filter(
    ({ engines, optional }) =>
      !optional && engines?.node?.startsWith('>=') && Number.parseInt(engines.node.slice(2), 10) > 20,
  )
  expect(newer.map(({ name }) => name)).toEqual([])
})

test('no file names the host of a package registry: the user’s own settings decide where packages come from', async () => {
  const { code, output, errors } = await run('git', ['ls-files', '-z'], { cwd: root })
  expect(code, errors).toBe(0)
  const files = output.split('\0').filter(Boolean)
  expect(files).toContain('package-lock.json')
  // The names of the hosts are put together here, so that this file does not contain them itself.
  const hosts = ['registry npmjs', 'www npmjs', 'registry yarnpkg'].map(words => words.replace(' ', '.'))
  const naming = async (file: string) => {
    // Git's list may include a file that was removed without a commit. Such a file is skipped.
    const text = await readFile(new URL(file, root), 'utf8').catch(() => '')
    return hosts.some(host => text.includes(host)) ? [file] : []
  }
  expect((await Promise.all(files.map(naming))).flat()).toEqual([])
})

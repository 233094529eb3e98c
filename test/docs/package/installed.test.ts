/** The package as it would be published: packed, installed into an empty folder, and used from there. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { run, runNode } from '../../kit/program.ts'
import { freshKey, redisUrl } from '../../kit/redis.ts'
import { root } from './imports.ts'

const at = (path: string) => fileURLToPath(new URL(path, root))
/** Time for npm, a compiler or a program to end, in ms. Generous: it only has to be shorter than for ever. */
const LIMIT = 130_000

let folder: string
let tarball: string

beforeAll(async () => {
  folder = await mkdtemp(join(await realpath(tmpdir()), 'redis-baton-installed-'))
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  const npm = (cwd: string, ...args: string[]) =>
    promisify(execFile)('npm', args, { cwd, timeout: LIMIT, maxBuffer: 2 ** 26 })
  const { stdout } = await npm(at('.'), 'pack', '--json', '--pack-destination', folder)
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }]
  tarball = join(folder, filename)
  await npm(folder, 'install', '--no-audit', '--no-fund', '--prefer-offline', tarball)
}, 2 * LIMIT)

afterAll(() => rm(folder, { recursive: true, force: true }))

describe('the packed package', () => {
  test('has nothing that publint complains of, not even a suggestion', async () => {
    const file = await readFile(tarball)
    const content = file.buffer.slice(file.byteOffset, file.byteOffset + file.byteLength)
    const { messages, pkg } = await publint({ pack: { tarball: content as ArrayBuffer }, strict: true })
    expect(messages.map(message => formatMessage(message, pkg))).toEqual([])
  })

  // The profile is that of a package of ES modules: what is left out of it are resolutions that this package does not
  // offer. `require` of an ES module works at run time (below) on every Node that `engines` names.
  test(
    'is resolved with its types by every kind of import',
    async () => {
      const attw = at('node_modules/@arethetypeswrong/cli/dist/index.js')
      const { code, output, errors } = await runNode([
        attw,
        tarball,
        '--profile',
        'esm-only',
        '--no-color',
        '--no-emoji',
      ])
      expect(code, output + errors).toBe(0)
      // It has nothing to complain of either where there are no types at all.
      for (const entry of ['"redis-baton"', '"redis-baton/opentelemetry"', '"redis-baton/nestjs"'])
        expect(output).toContain(entry)
    },
    LIMIT,
  )

  test('came without a script that npm would have run', async () => {
    const { packages } = JSON.parse(await readFile(join(folder, 'node_modules/.package-lock.json'), 'utf8')) as {
      packages: Record<string, { hasInstallScript?: boolean }>
    }
    const scripted = Object.entries(packages).filter(([, { hasInstallScript }]) => hasInstallScript)
    expect(Object.keys(packages)).toContain('node_modules/redis-baton')
    expect(scripted.map(([name]) => name)).toEqual([])
  })

  test(
    'has the program in the path of npx',
    async () => {
      const { version } = JSON.parse(await readFile(at('package.json'), 'utf8')) as { version: string }
      const { code, output, errors } = await run('npx', ['--no-install', 'baton', '--version'], { cwd: folder })
      expect(code, errors).toBe(0)
      expect(output.trim()).toBe(version)
    },
    LIMIT,
  )

  const use = `
    const locks = new LockClient(process.argv[1])
    locks.using(process.argv[2], lease => console.log(lease.held)).finally(() => locks.close())`

  test.each([
    ['import', 'module', `import { LockClient } from 'redis-baton'`],
    ['require', 'commonjs', `const { LockClient } = require('redis-baton')`],
  ])(
    'locks by %s',
    async (_, type, statement) => {
      const program = [`--input-type=${type}`, '-e', `${statement};${use}`, '--', redisUrl(), freshKey('installed')]
      const { code, output, errors } = await runNode(program, { cwd: folder })
      expect(code, errors).toBe(0)
      expect(output.trim()).toBe('true')
    },
    LIMIT,
  )
})

describe('a strict user', () => {
  beforeAll(async () => {
    await writeFile(join(folder, 'consumer.ts'), await readFile(at('test/docs/package/consumer.program.ts')))
    // Users of TypeScript for Node have these; here they are the project's own.
    for (const types of ['@types/node', '@opentelemetry/api']) {
      const place = join(folder, 'node_modules', types)
      await mkdir(dirname(place), { recursive: true })
      await symlink(at(`node_modules/${types}`), place)
    }
  })

  test.each([
    ['typescript', 'nodenext', 'nodenext'],
    ['typescript', 'preserve', 'bundler'],
    ['typescript-5', 'nodenext', 'nodenext'],
  ])(
    'compiles with %s, module %s, moduleResolution %s',
    async (compiler, module, moduleResolution) => {
      const config = join(folder, `${compiler}-${moduleResolution}.json`)
      const compilerOptions = {
        module,
        moduleResolution,
        target: 'es2022',
        lib: ['es2023', 'esnext.disposable'],
        types: ['node'],
        strict: true,
        exactOptionalPropertyTypes: true,
        noUncheckedIndexedAccess: true,
        skipLibCheck: false,
        // The compiler's own.
        skipDefaultLibCheck: true,
        noEmit: true,
      }
      await writeFile(config, JSON.stringify({ compilerOptions, files: ['consumer.ts'] }))
      const { code, output } = await runNode([at(`node_modules/${compiler}/bin/tsc`), '-p', config])
      expect(output).toBe('')
      expect(code).toBe(0)
    },
    70_000,
  )
})

/** Tests the package as it would be published: it is packed, installed into an empty folder, and used from there. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { entries } from '../../../scripts/build/entries.ts'
import { run, runNode } from '../../kit/program.ts'
import { freshKey, redisUrl } from '../../kit/redis.ts'
import { root } from './imports.ts'

const at = (path: string) => fileURLToPath(new URL(path, root))
/** Time limit for npm, a compiler or a program, in ms. Generous, because it only has to end a run that hangs. */
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
  test('has nothing that publint complains about, not even a suggestion', async () => {
    const file = await readFile(tarball)
    const content = file.buffer.slice(file.byteOffset, file.byteOffset + file.byteLength)
    const { messages, pkg } = await publint({ pack: { tarball: content as ArrayBuffer }, strict: true })
    expect(messages.map(message => formatMessage(message, pkg))).toEqual([])
  })

  test(
    'is resolved with its types by every kind of import',
    async () => {
      const attw = at('node_modules/@arethetypeswrong/cli/dist/index.js')
      const { code, output, errors } = await runNode([attw, tarball, '--no-color', '--no-emoji'])
      expect(code, output + errors).toBe(0)
      // attw reports no problem if the package has no types at all. So each entry of the package must appear in its
      // output.
      for (const { name } of entries) expect(output).toContain(`"${name}"`)
    },
    LIMIT,
  )

  test('installs no more than 15 packages and 4.2 MB, ioredis included', async () => {
    const installed = join(folder, 'node_modules')
    const { packages } = JSON.parse(await readFile(join(installed, '.package-lock.json'), 'utf8'))
    expect(Object.keys(packages)).toEqual(expect.arrayContaining(['node_modules/redis-baton', 'node_modules/ioredis']))
    expect(Object.keys(packages).length).toBeLessThanOrEqual(15)
    const files = await readdir(installed, { recursive: true, withFileTypes: true })
    const sizes = files.filter(file => file.isFile()).map(file => stat(join(file.parentPath, file.name)))
    const bytes = (await Promise.all(sizes)).reduce((sum, { size }) => sum + size, 0)
    expect(bytes).toBeLessThanOrEqual(4_200_000)
  })

  test('includes the licence of each package that is bundled, and of none that is installed', async () => {
    const notices = await readFile(join(folder, 'node_modules/redis-baton/dist/third-party-notices.txt'), 'utf8')
    const bundled = [...notices.matchAll(/^(\S+) (\d+\.\d+\.\d+\S*) \((.+)\)$/gm)].map(([, name]) => name)
    expect(bundled).toEqual(expect.arrayContaining(['commander', 'hono', 'd3-scale', 'p-timeout']))
    expect(bundled).not.toContain('ioredis')
  })

  test('has no script that npm would run', async () => {
    const { packages } = JSON.parse(await readFile(join(folder, 'node_modules/.package-lock.json'), 'utf8')) as {
      packages: Record<string, { hasInstallScript?: boolean }>
    }
    const scripted = Object.entries(packages).filter(([, { hasInstallScript }]) => hasInstallScript)
    expect(Object.keys(packages)).toContain('node_modules/redis-baton')
    expect(scripted.map(([name]) => name)).toEqual([])
  })

  test(
    'puts the program into the path of npx',
    async () => {
      const { version } = JSON.parse(await readFile(at('package.json'), 'utf8')) as { version: string }
      const { code, output, errors } = await run('npx', ['--no-install', 'baton', '--version'], { cwd: folder })
      expect(code, errors).toBe(0)
      expect(output.trim()).toBe(version)
    },
    LIMIT,
  )

  describe('the installed program', () => {
    const program = () => join(folder, 'node_modules/redis-baton/dist/cli/main.js')

    test(
      'runs the demo, with processes of its own, on a named server',
      async () => {
        const { code, output, errors } = await runNode([program(), 'demo', '--url', redisUrl()], { cwd: folder })
        expect(code, output + errors).toBe(0)
        expect(output).toContain('50 sold, 0 oversold')
      },
      LIMIT,
    )

    test(
      'runs the benchmark, and says why it leaves out the Java locks',
      async () => {
        const some = ['--rival', 'baton-fair,floor-set,redisson-lock', '--scenario', 'uncontended']
        const short = ['--rounds', '1', '--seconds', '0.1', '--rtt', '1', '--no-warm-cores', '--url', redisUrl()]
        const { code, output, errors } = await runNode([program(), 'bench', ...some, ...short], { cwd: folder })
        expect(code, output + errors).toBe(0)
        expect(output).toMatch(/^ *baton-fair .*\d/m)
        expect(output).toContain('needs a Java program that is not in the npm package')
      },
      LIMIT,
    )

    test(
      'says what to install if there is no server, and fetches none',
      async () => {
        const env = { ...process.env, REDIS_URL: '', BATON_REDIS_IMAGE: '', PATH: folder }
        const { code, errors } = await runNode([program(), 'bench', '--rounds', '1', '--seconds', '0.1'], {
          cwd: folder,
          env,
        })
        expect(code).toBe(69)
        expect(errors).toContain('No Redis server could be found or started.')
        expect(errors).toContain('apt install redis-server')
        expect(errors).not.toContain('distribution package')
      },
      LIMIT,
    )
  })

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
    // Users of TypeScript on Node have these types. The test puts links to this repository's copies into the user's
    // folder.
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
        // The next option skips only the compiler's own declarations.
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

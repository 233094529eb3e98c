/** Tests the package as it would be published: it is packed, installed into an empty folder, and used from there. */
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { entries } from '../../../scripts/build/entries.ts'
import { run, runNode } from '../../kit/program.ts'
import { redisUrl } from '../../kit/redis.ts'
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
})

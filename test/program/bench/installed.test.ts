/**
 * Tests that only packages installed in the current folder are measured, and only in versions that their adapters
 * support.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import type { Results } from '../../../benchmarks/contract.ts'
import { notInstalled, suits } from '../../../benchmarks/rivals/installed.ts'
import { runNode } from '../../kit/program.ts'
import { redisUrl } from '../../kit/redis.ts'
import { emptyFolder } from '../../kit/temp.ts'

const program = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url))

/** Writes a package as `npm install` would. `source` is an ES module, which can only be imported, not required. */
async function install(folder: string, name: string, version: string, source: string): Promise<void> {
  const at = join(folder, 'node_modules', name)
  await mkdir(at, { recursive: true })
  const exports = { '.': { import: './index.mjs' } }
  await writeFile(join(at, 'package.json'), JSON.stringify({ name, version, exports }))
  await writeFile(join(at, 'index.mjs'), source)
}

/** Starts `baton` with this folder as its working folder. `baton` itself is installed elsewhere. */
async function bench(folder: string, rival: string): Promise<{ output: string; results: Results }> {
  const json = join(folder, 'results.json')
  const short = ['--scenario', 'uncontended', '--rounds', '1', '--seconds', '0.1', '--no-warm-cores', '--json', json]
  const args = [program, 'bench', '--url', redisUrl(), '--rival', `floor-set,${rival}`, ...short]
  const { output, errors, code } = await runNode(args, { cwd: folder })
  expect(code, errors).toBe(0)
  return { output, results: JSON.parse(await readFile(json, 'utf8')) }
}

describe('in the current folder', { timeout: 90_000 }, () => {
  test('a rival is found by a program that is installed elsewhere, and measured', async () => {
    const folder = await emptyFolder()
    const connection = '{ quit: async () => {} }'
    const source = `export default class {
      _redisConnection = ${connection}
      _redisSubscriber = ${connection}
      async waitAcquireLock() { return { success: true } }
      async releaseLock() {}
    }`
    await install(folder, 'ioredfour', '1.4.99', source)
    const { results } = await bench(folder, 'ioredfour')
    expect(results.rivals.find(({ name }) => name === 'ioredfour')).toMatchObject({ version: '1.4.99' })
    expect(results.trials.find(({ rival }) => rival === 'ioredfour')).toMatchObject({ outcome: 'measured' })
  })
})

test('a missing package is named, with its version if one is known', async () => {
  expect(await notInstalled('ioredis', 'no-such-rival')).toBe('not installed: npm install no-such-rival')
  expect(await notInstalled('live-mutex', 'ioredfour', 'no-such-rival')).toMatch(
    /^not installed: npm install (live-mutex@0\.2\.25 )?no-such-rival$/,
  )
})

test.each([
  ['5.8.0', '5.8.0', true],
  ['5.8.1', '5.8.0', true],
  ['5.10.0', '5.8.0', true],
  ['5.7.9', '5.8.0', false],
  ['6.8.0', '5.8.0', false],
  ['0.2.26', '0.2.25', true],
  ['0.2.24', '0.2.25', false],
  ['0.3.0', '0.2.25', false],
  ['v5.0.0-beta.2', '5.0.0-beta.2', true],
  ['5.0.0-beta.3', '5.0.0-beta.2', false],
  ['5.0.0', '5.0.0-beta.2', false],
  ['4.2.0', '5.0.0-beta.2', false],
  ['5.9.0-alpha.1', '5.8.0', false],
])('%s is accepted if %s is known: %s', (version, known, expected) => {
  expect(suits(version, known)).toBe(expected)
})

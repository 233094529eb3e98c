/**
 * Each block of docs/testing-your-program.md is a file, whose name is in its first line. This test puts the files into a
 * folder, checks the types of all of them, and runs those that need neither a container nor Jest.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runNode } from '../kit/program.ts'
import { readPage, root } from './page.ts'

const tool = (path: string) => fileURLToPath(new URL(`node_modules/${path}`, root))
const blocks = readPage('docs/testing-your-program.md').blocks.map(({ text, language }) => ({
  name: /^\/\/ (\S+)\n/.exec(text)?.[1],
  language,
  text,
}))

/** What `@types/jest` declares of what the page uses. */
const jest = `
declare const jest: {
  useFakeTimers(): void
  useRealTimers(): void
  advanceTimersByTimeAsync(ms: number): Promise<void>
}
declare function test(name: string, run: () => Promise<void>): void
declare function beforeEach(run: () => void): void
declare function afterEach(run: () => Promise<void>): void
declare function afterAll(run: () => Promise<void>): void
declare function expect(value: unknown): { toBe(other: unknown): void }
`
const options = {
  extends: join(fileURLToPath(root), 'tsconfig.json'),
  compilerOptions: {
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    isolatedModules: false,
    verbatimModuleSyntax: false,
  },
}
let folder: string

beforeAll(async () => {
  // Inside the project, so that the package finds itself by its name, and the runner its packages.
  folder = await mkdtemp(fileURLToPath(new URL('.cache/testing-', root)))
  await Promise.all(blocks.map(({ name, text }) => writeFile(join(folder, name as string), text)))
  await writeFile(join(folder, 'jest.d.ts'), jest)
})

afterAll(() => rm(folder, { recursive: true, force: true }))

test('each block names its file', () => {
  expect(blocks.filter(({ name }) => name === undefined)).toEqual([])
  expect(new Set(blocks.map(({ name }) => name)).size).toBe(blocks.length)
})

test.each([
  ['Vitest', options, (name: string) => !name.includes('jest')],
  // What ts-jest takes if there is no tsconfig. Jest loads CommonJS, where a relative import needs no extension.
  [
    'Jest',
    { compilerOptions: { target: 'es2015', module: 'preserve', allowJs: true, skipLibCheck: true, types: ['node'] } },
    (name: string) => name.includes('jest') || name === 'charge.ts',
  ],
])(
  'the types are right, with %s',
  async (runner, config, belongs) => {
    const files = [...blocks.map(({ name }) => name as string), 'jest.d.ts'].filter(belongs)
    const project = join(folder, `tsconfig.${runner}.json`)
    await writeFile(project, JSON.stringify({ ...config, files, include: [] }))
    const { code, output } = await runNode([tool('typescript/bin/tsc'), '-p', project, '--noEmit'])
    expect(code, output).toBe(0)
  },
  120_000,
)

test('the tests in memory pass', async () => {
  const { compilerOptions } = options
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
  const files = ['charge.test.ts', 'charges.nest.test.ts']
  const config = join(folder, 'none.config.js')
  await writeFile(config, 'export default {}')
  const args = ['vitest/vitest.mjs', 'run', '--root', folder, '--config', config, '--test-timeout', '60000', ...files]
  const { code, output, errors } = await runNode([tool(args[0] as string), ...args.slice(1)], {
    cwd: folder,
    env: { NO_COLOR: '1' },
  })
  expect(code, output + errors).toBe(0)
  expect(output).toMatch(/Tests +6 passed/)
}, 120_000)

/**
 * Test programs, one for each kind of user: the files that the user would write, and the commands that the user would
 * type.
 */

export interface Consumer {
  readonly name: string
  readonly set: SetName
  /** The consumer's own files. The key is the file's name, and the value its text. An object is written as JSON. */
  readonly files: Readonly<Record<string, string | object>>
  /**
   * Commands that run one after the other in the consumer's folder, with the programs of the installation on the PATH.
   */
  readonly commands: readonly (readonly [string, ...string[]])[]
  /** Text that the output of the last command must contain. */
  readonly says?: string
}

export interface ConsumerSet {
  readonly packages: readonly string[]
  /**
   * If true, the packages cannot be installed on some machines, for instance because a package downloads its program.
   * On such a machine, the consumers of this installation count as not run.
   */
  readonly mayBeMissing?: boolean
}

const babel = ['@babel/core@7', '@babel/preset-env@7', '@babel/preset-typescript@7']

/**
 * The packages of each installation. An installation is made once, and several consumers use it. It contains ioredis
 * only once, as an application does.
 */
export const sets = {
  newest: {
    packages: [
      ...['ioredis@6', 'typescript@5.9', '@types/node@20', '@types/jest@30', 'jest@30', 'ts-jest@29', 'babel-jest@30'],
      ...[...babel, 'vitest@4', 'tsx@4', 'esbuild@0.28', 'webpack@5', 'webpack-cli@6'],
    ],
  },
  older: {
    packages: [
      ...['ioredis@5', 'typescript@5.9', '@types/node@20', '@types/jest@29', 'jest@29', 'ts-jest@29', 'babel-jest@29'],
      ...babel,
    ],
  },
  next: { packages: ['ioredis@6', 'next@16', 'react@19', 'react-dom@19'], mayBeMissing: true },
  runtimes: { packages: ['ioredis@6', 'bun@1', 'deno@2'], mayBeMissing: true },
  valkey: { packages: ['ioredis@6', 'iovalkey@0.4'] },
} as const satisfies Record<string, ConsumerSet>

export type SetName = keyof typeof sets

/** Takes a lock with the user's own ioredis, checks that another owner is refused, and ends. */
const work = `
async function work(key) {
  const redis = new Redis(String(process.env.REDIS_URL))
  const locks = new LockClient(redis)
  try {
    return await locks.using(key, async lease => {
      const refused = await locks.runAs('somebody else', () => locks.lock(key, { timeout: 50 })).catch(error => error)
      if (!(refused instanceof LockTimeoutError)) throw new Error('both have it')
      return lease.held ? 'locked' : 'lost'
    })
  } finally {
    await locks.close()
    redis.disconnect()
  }
}
`
const typed = work
  .replace('(key)', '(key: string): Promise<string>')
  .replace('error => error', '(error: unknown) => error')
const print = `work(process.argv[1] + Date.now()).then(said => console.log(said))`
const imports = `import { Redis } from 'ioredis'\nimport { LockClient, LockTimeoutError } from 'redis-baton'\n`
const requires = `const { Redis } = require('ioredis')\nconst { LockClient, LockTimeoutError } = require('redis-baton')\n`

const esm = `${imports}${work}${print}\n`
const commonjs = `${requires}${work}${print}\n`
const typescript = `${imports}${typed}${print}\n`
/** What may depend on the runtime or on the client: messages, async context, timers, and the end of a hold. */
const thorough = `
import { setTimeout as sleep } from 'node:timers/promises'
import { LockClient, LockLostError } from 'redis-baton'

function expect(what, found, wanted) {
  if (found !== wanted) throw new Error(what + ': ' + found + ' instead of ' + wanted)
}
const key = 'thorough' + Date.now()
const connection = makeConnection(String(process.env.REDIS_URL))
const [one, other] = [new LockClient(connection, { lease: 600 }), new LockClient(connection)]

const first = await one.lock(key)
const next = other.lock(key, { fair: true, timeout: 10_000 })
while ((await one.inspect(key)).waiters.length === 0) await sleep(10)
await sleep(1_500)
expect('renewal', first.held, true)
await first.release()
const second = await next
expect('hand-off', second.via, 'handoff')
await second.release()

await one.using(key, () => sleep(20).then(() => one.using(key, ({ via }) => expect('re-entry by context', via, 'reentry'))))

const lost = await one
  .using(key, async ({ signal }) => {
    await other.forceRelease(key)
    await sleep(5_000, undefined, { signal })
  })
  .catch(error => error)
expect('loss', lost instanceof LockLostError, true)

await Promise.all([one.close(), other.close()])
connection.disconnect()
console.log('locked')
`
const thoroughBy = (connection: string) => `${connection}\n${thorough}`
const byIoredis = thoroughBy(`import { Redis } from 'ioredis'\nconst makeConnection = url => new Redis(url)`)

/** Also looks at an error of a socket. In Jest, it is of another realm. */
const jestTest = `${imports}${typed}
test('a lock', async () => expect(await work('jest' + Date.now())).toBe('locked'))

test('an error of a socket', async () => {
  const locks = new LockClient('redis://127.0.0.1:1', { outageTimeout: 300 })
  const error: unknown = await locks.lock('key').catch((error: unknown) => error)
  await locks.close()
  expect((error as Error).message).toContain('ECONNREFUSED')
  expect((error as Error).cause).toBeInstanceOf(Error)
})
`
/** Jest fakes `process.nextTick` and `queueMicrotask`, too. Its legacy timers leave the clock as it is. */
const jestMemoryTest = `
import { LockClient } from 'redis-baton'
import { memory } from 'redis-baton/memory'

for (const legacyFakeTimers of [false, true]) {
  test('a lock in memory, with fake timers, legacy: ' + legacyFakeTimers, async () => {
    jest.useFakeTimers({ legacyFakeTimers } as never)
    const store = memory()
    const [locks, other] = [new LockClient(store), new LockClient(store)]
    const lease = await locks.lock('key', { lease: 2_000 })
    const [next, busy] = [other.lock('key', { fair: true }), locks.tryLock('key', { timeout: 1_000 })]
    jest.advanceTimersByTime(1_001)
    expect(await busy).toBe(null)
    expect(await lease.release()).toBe(true)
    expect((await next).via).toBe('handoff')
    await locks.using('other', () => other.all(['a', 'b']).using(() => {}))
    await Promise.all([locks.close(), other.close()])
    jest.useRealTimers()
  })
}
`
const vitestTest = `import { expect, test } from 'vitest'\n${jestTest}`

const compilerOptions = {
  target: 'es2022',
  lib: ['es2023', 'esnext.disposable'],
  types: ['node'],
  strict: true,
  // Checks the declarations of the package as well.
  skipLibCheck: false,
}

function compiled(set: 'newest' | 'older', module: string, moduleResolution: string, type: string): Consumer {
  const of5 = set === 'older'
  return {
    name: `tsc --strict, ${moduleResolution}, ${type}, ioredis ${of5 ? 5 : 6}`,
    set,
    files: {
      'main.ts': typescript,
      'package.json': { type },
      'tsconfig.json': {
        compilerOptions: { ...compilerOptions, module, moduleResolution, outDir: 'out' },
        files: ['main.ts'],
      },
    },
    commands: [
      ['tsc', '-p', '.'],
      ['node', 'out/main.js'],
    ],
  }
}

function jest(set: 'newest' | 'older', transform: 'ts-jest' | 'babel'): Consumer {
  const presets = [['@babel/preset-env', { targets: { node: 'current' } }], '@babel/preset-typescript']
  const settings = {
    'ts-jest': { 'jest.config.json': { preset: 'ts-jest', testEnvironment: 'node' } },
    babel: { 'jest.config.json': { testEnvironment: 'node' }, 'babel.config.json': { presets } },
  }
  const of5 = set === 'older'
  return {
    name: `Jest ${of5 ? 29 : 30} with ${transform}, ioredis ${of5 ? 5 : 6}`,
    set,
    files: {
      'lock.test.ts': jestTest,
      'memory.test.ts': jestMemoryTest,
      'package.json': {},
      'tsconfig.json': {
        compilerOptions: { ...compilerOptions, module: 'commonjs', types: ['node', 'jest'], esModuleInterop: true },
      },
      ...settings[transform],
    },
    commands: [['jest', '--ci', '--no-watchman', '--rootDir', '.']],
    says: '',
  }
}

const plain = (set: 'newest' | 'older', number: number): Consumer[] => [
  { name: `import, ioredis ${number}`, set, files: { 'main.mjs': esm }, commands: [['node', 'main.mjs']] },
  { name: `require, ioredis ${number}`, set, files: { 'main.cjs': commonjs }, commands: [['node', 'main.cjs']] },
]

/**
 * ioredis calls `require` for Node's own modules. An ES module has no `require`, so the bundle begins with a line that
 * makes one.
 */
const banner = `--banner:js=import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)`
const bundled = ['esbuild', 'main.mjs', '--bundle', '--platform=node', '--log-level=warning'] as const

export const consumers: readonly Consumer[] = [
  ...plain('newest', 6),
  ...plain('older', 5),
  ...(['newest', 'older'] as const).flatMap(set => [
    compiled(set, 'nodenext', 'nodenext', 'module'),
    compiled(set, 'node16', 'node16', 'commonjs'),
    compiled(set, 'esnext', 'bundler', 'module'),
  ]),
  compiled('newest', 'commonjs', 'node10', 'commonjs'),
  ...(['newest', 'older'] as const).flatMap(set => [jest(set, 'ts-jest'), jest(set, 'babel')]),
  {
    name: 'Vitest',
    set: 'newest',
    files: { 'lock.test.ts': vitestTest, 'vitest.config.mjs': 'export default {}' },
    commands: [['vitest', 'run', '--root', '.']],
    says: '1 passed',
  },
  { name: 'tsx', set: 'newest', files: { 'main.ts': typescript }, commands: [['tsx', 'main.ts']] },
  {
    name: 'esbuild to ESM',
    set: 'newest',
    files: { 'main.mjs': esm },
    commands: [
      [...bundled, '--format=esm', banner, '--outfile=out.mjs'],
      ['node', 'out.mjs'],
    ],
  },
  {
    name: 'esbuild to CommonJS',
    set: 'newest',
    files: { 'main.mjs': esm },
    commands: [
      [...bundled, '--format=cjs', '--outfile=out.cjs'],
      ['node', 'out.cjs'],
    ],
  },
  {
    name: 'webpack',
    set: 'newest',
    files: {
      'main.mjs': esm,
      'webpack.config.cjs': `module.exports = { mode: 'production', target: 'node20', entry: './main.mjs', output: { path: __dirname, filename: 'out.cjs' } }`,
    },
    commands: [
      ['webpack', '--config', 'webpack.config.cjs'],
      ['node', 'out.cjs'],
    ],
  },
  {
    name: 'Next, a server component',
    set: 'next',
    files: {
      'app/layout.js': `export default ({ children }) => <html><body>{children}</body></html>`,
      'app/page.js': `${imports}${work}export default async () => <p>{await work('next' + Date.now())}</p>`,
      'package.json': { private: true },
      'look.cjs': `console.log(/<p>(.*?)<\\/p>/.exec(require('node:fs').readFileSync('.next/server/app/index.html', 'utf8'))[1])`,
    },
    commands: [
      ['next', 'build'],
      ['node', 'look.cjs'],
    ],
  },
  { name: 'Bun', set: 'runtimes', files: { 'main.mjs': byIoredis }, commands: [['bun', 'main.mjs']] },
  {
    name: 'Deno',
    set: 'runtimes',
    files: { 'main.mjs': byIoredis },
    commands: [['deno', 'run', '--allow-all', '--node-modules-dir=manual', 'main.mjs']],
  },
  {
    name: 'iovalkey',
    set: 'valkey',
    files: { 'main.mjs': thoroughBy(`import Valkey from 'iovalkey'\nconst makeConnection = url => new Valkey(url)`) },
    commands: [['node', 'main.mjs']],
  },
]

import { readdir, readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { example, runNode } from '../../kit/program.ts'
import { client, redisUrl } from '../../kit/redis.ts'

const folder = new URL('../../../examples/', import.meta.url)

/**
 * The output of each example that ends on its own. The other examples keep running or need arguments, and have test
 * files of their own.
 */
const printed: Record<string, string[]> = {
  'scoped-use.ts': [
    'Ada: invoice 1 (immediate)',
    'Grace: invoice 2 (handoff)',
    'Edsger: invoice 3 (handoff)',
    'all different: true',
    'failed: out of paper; still locked: false',
  ],
  'await-using.ts': [
    'granted (immediate)',
    'exported orders',
    'exported customers',
    'still locked: false',
    'granted (immediate)',
    'the second export has the larger token: true',
  ],
  'try-with-timeout.ts': [
    'one attempt: somebody else is writing it',
    '200 ms: given up, held by the report server',
    'until stopped: not written, the server shuts down',
    '10 s: written',
    'one attempt: written',
  ],
  'fenced-write.ts': [
    'the next holder has a larger token: true',
    'it deposits 50: 150',
    'the paused process still holds: false',
    'its write is refused: 150',
  ],
  'decorator.ts': [
    'stored 70 (reentry)',
    'stored 40 (reentry)',
    'stored 10 (reentry)',
    'left after each: 70, 40, 10',
    'stored 0 (reentry)',
    'paid out: 10',
    'not closed: the account is held by the bank',
  ],
  'reentry-across-processes.ts': [
    'parent: holds (immediate)',
    'child: without the owner: refused',
    'child: as the owner: granted (reentry)',
    "parent: still holds after the child's release: true",
    'parent: still locked: false',
  ],
}

describe('an example ends on its own, prints what it shows, and leaves nothing locked', () => {
  test.each(Object.entries(printed))('%s', { timeout: 70_000 }, async (name, lines) => {
    const { code, output, errors } = await runNode(example(name), { env: { REDIS_URL: redisUrl() } })

    expect(code, errors).toBe(0)
    expect(output.trimEnd().split('\n')).toEqual(lines)
    const left: string[] = []
    for await (const { key } of client().list('example:*')) left.push(key)
    expect(left).toEqual([])
  })
})

describe('every example is covered', async () => {
  const examples = (await readdir(folder)).filter(name => name !== 'README.md')
  const tests = (await readdir(new URL('.', import.meta.url))).filter(name => name.endsWith('.test.ts'))

  test('each example has a test, and each test has its example', () => {
    const tested = tests.filter(name => name !== 'examples.test.ts').map(name => name.replace(/\.test\.ts$/, ''))
    const named = [...tested, ...Object.keys(printed).map(name => name.replace(/\.ts$/, ''))]
    expect(examples.map(name => name.replace(/\.ts$/, '')).sort()).toEqual(named.sort())
  })

  test('each example has a line in the README, with a link', async () => {
    const readme = await readFile(new URL('README.md', folder), 'utf8')
    const linked = [...readme.matchAll(/^- \[(.+?)\/?\]\(\1.*?\): .+$/gm)].map(([, name]) => name)
    expect(linked.sort()).toEqual(examples.sort())
  })

  test.each(examples.filter(name => name.endsWith('.ts')))('%s imports the package as a user does', async name => {
    const source = await readFile(new URL(name, folder), 'utf8')
    expect(source).toMatch(/ from 'redis-baton'$/m)
    expect(source).not.toMatch(/ from '\.\.?\//)
  })
})

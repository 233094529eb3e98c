/**
 * Breaks each line that a test of test/fault names as the one that it guards, and sees that the test fails.
 *
 *   npm run test:breaks                                       all of them, one after another
 *   npm run test:breaks -- test/fault/messages.test.ts        those of one file
 *   npm run test:breaks -- test/fault/messages.test.ts:270    those of one test
 *
 * It works on a copy of the project. The tests have to pass there first; the exit code is 1 unless each break was found.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { type Break, breaksIn, troubleOf } from './comments.ts'

const root = new URL('../../', import.meta.url)
const WITHIN = 300_000

interface Report {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly failureMessages: readonly string[] }[]
  }[]
}

class Copy {
  readonly folder: string

  private constructor(folder: string) {
    this.folder = folder
  }

  static async make(): Promise<Copy> {
    const folder = await mkdtemp(join(tmpdir(), 'baton-breaks-'))
    for (const name of ['src', 'lua', 'scripts', 'test', 'package.json', 'tsconfig.json', 'vitest.config.ts']) {
      await cp(new URL(name, root), join(folder, name), { recursive: true })
    }
    for (const name of ['node_modules', '.cache']) await symlink(fileURLToPath(new URL(name, root)), join(folder, name))
    return new Copy(folder)
  }

  /** Runs tests, named as the test runner takes them, with the changes made. */
  async run(tests: readonly string[], changes: Break['changes']): Promise<Report | undefined> {
    const texts = new Map<string, string>()
    for (const { path } of changes) texts.set(path, await readFile(join(this.folder, path), 'utf8'))
    const broken = new Map(texts)
    for (const { path, from, to } of changes) {
      const text = broken.get(path) ?? ''
      broken.set(
        path,
        text.replace(from, () => to),
      )
    }
    await this.#write(broken)
    const report = join(this.folder, 'report.json')
    await rm(report, { force: true })
    await this.#program('vitest', 'run', '--reporter=json', `--outputFile=${report}`, ...tests)
    await this.#write(texts)
    const text = await readFile(report, 'utf8').catch(() => undefined)
    return text === undefined ? undefined : (JSON.parse(text) as Report)
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true })
  }

  async #write(texts: ReadonlyMap<string, string>): Promise<void> {
    for (const [path, text] of texts) await writeFile(join(this.folder, path), text)
    if ([...texts.keys()].some(path => path.startsWith('lua/'))) await this.#program('tsx', 'scripts/build-lua.ts')
  }

  async #program(name: string, ...args: string[]): Promise<void> {
    const program = spawn(join('node_modules', '.bin', name), args, {
      cwd: this.folder,
      stdio: 'ignore',
      timeout: WITHIN,
    })
    await once(program, 'close')
  }
}

/** What the first failing test said. */
function sawIn({ testResults }: Report): string {
  const [message = ''] = testResults.flatMap(file => file.assertionResults.flatMap(one => one.failureMessages))
  return stripVTControlCharacters(message).split('\n', 1)[0]!
}

function verdictOf(report: Report | undefined): { found: boolean; saw: string } {
  if (!report) return { found: false, saw: 'the test runner gave no report' }
  const { numFailedTests, numPassedTests } = report
  if (numFailedTests > 0) return { found: true, saw: sawIn(report) }
  return { found: false, saw: numPassedTests > 0 ? 'the tests passed' : 'no test ran' }
}

/** As the test runner takes it. */
function nameOf({ file, line }: Break): string {
  return `${file}:${line}`
}

const asked = process.argv.slice(2)
const files = (await readdir(new URL('test/fault', root))).filter(name => name.endsWith('.test.ts'))
const breaks: Break[] = []
for (const file of files.sort().map(name => `test/fault/${name}`)) {
  breaks.push(...breaksIn(file, await readFile(new URL(file, root), 'utf8')))
}
const chosen = breaks.filter(each => asked.length === 0 || asked.includes(each.file) || asked.includes(nameOf(each)))
const impossible = chosen.flatMap(each => troubleOf(each, root)?.concat(` (${nameOf(each)})`) ?? [])
if (chosen.length === 0) impossible.push('nothing to break there')
if (impossible.length > 0) {
  console.error(impossible.join('\n'))
  process.exit(1)
}

const copy = await Copy.make()
let missed = 0
try {
  const whole = await copy.run([...new Set(chosen.map(nameOf))], [])
  if (!whole || whole.numFailedTests > 0 || whole.numPassedTests === 0) {
    throw new Error(`unbroken, the tests do not pass: ${whole ? sawIn(whole) : 'no report'}`)
  }
  for (const each of chosen) {
    const { found, saw } = verdictOf(await copy.run([nameOf(each)], each.changes))
    if (!found) missed += 1
    const broken = each.changes.map(({ path, from, to }) => `  ${path}: ${from} → ${to}`)
    console.log([`${found ? 'found' : 'MISSED'}  ${nameOf(each)}`, ...broken, `  ${saw}`].join('\n'))
  }
} finally {
  await copy.remove()
}
console.log(`${chosen.length - missed} of ${chosen.length} breaks found`)
process.exitCode = missed === 0 ? 0 : 1

/** A copy of the project in which lines are broken. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Change, root } from './comments.ts'
import { configs } from './guarded.ts'

/** How long one run of tests may take, in ms. */
const WITHIN = 300_000

/** Of the test runner. */
export interface Report {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly failureMessages: readonly string[] }[]
  }[]
}

/** Why there is no report. */
export interface Trouble {
  readonly trouble: string
}

function broken(texts: ReadonlyMap<string, string>, changes: readonly Change[]): Map<string, string> {
  const result = new Map(texts)
  for (const { path, from, to } of changes) {
    const [before, after] = result.get(path)!.split(from)
    result.set(path, `${before}${to}${after}`)
  }
  return result
}

export class Copy {
  readonly folder: string

  private constructor(folder: string) {
    this.folder = folder
  }

  static async make(): Promise<Copy> {
    const folder = await mkdtemp(join(tmpdir(), 'baton-breaks-'))
    for (const name of ['src', 'lua', 'local-redis', 'scripts', 'test', 'package.json', 'tsconfig.json', ...configs]) {
      await cp(new URL(name, root), join(folder, name), { recursive: true })
    }
    for (const name of ['node_modules', '.cache']) await symlink(fileURLToPath(new URL(name, root)), join(folder, name))
    return new Copy(folder)
  }

  /** Runs the test runner with the changes made, and puts them right again. */
  async run(args: readonly string[], changes: readonly Change[]): Promise<Report | Trouble> {
    const texts = new Map<string, string>()
    for (const { path } of changes) texts.set(path, await readFile(join(this.folder, path), 'utf8'))
    try {
      const trouble = await this.#write(broken(texts, changes))
      return trouble ?? (await this.#test(args))
    } finally {
      await this.#write(texts)
    }
  }

  async #test(args: readonly string[]): Promise<Report | Trouble> {
    const report = join(this.folder, 'report.json')
    await rm(report, { force: true })
    await this.#program('vitest', 'run', '--reporter=json', `--outputFile=${report}`, ...args)
    const text = await readFile(report, 'utf8').catch(() => undefined)
    return text === undefined ? { trouble: 'the test runner gave no report' } : (JSON.parse(text) as Report)
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true })
  }

  /** Scripts that cannot be built stay as they were: the tests would run, and pass, with those. */
  async #write(texts: ReadonlyMap<string, string>): Promise<Trouble | undefined> {
    for (const [path, text] of texts) await writeFile(join(this.folder, path), text)
    if (![...texts.keys()].some(path => path.startsWith('lua/'))) return undefined
    const code = await this.#program('tsx', 'scripts/build-lua.ts')
    return code === 0 ? undefined : { trouble: 'the scripts cannot be built from that' }
  }

  /** Its exit code. */
  async #program(name: string, ...args: string[]): Promise<number | null> {
    const program = spawn(join('node_modules', '.bin', name), args, {
      cwd: this.folder,
      stdio: 'ignore',
      timeout: WITHIN,
    })
    const [code] = (await once(program, 'close')) as [number | null]
    return code
  }
}

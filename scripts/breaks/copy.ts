/** Makes a copy of the project in which lines can be broken. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Change, root } from './comments.ts'

/** How long one run of tests may take, in ms. */
const WITHIN = 300_000

/** The test runner's report. */
export interface Report {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly failureMessages: readonly string[] }[]
  }[]
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
    for (const name of [
      'src',
      'lua',
      'local-redis',
      'scripts',
      'test',
      'package.json',
      'tsconfig.json',
      'vitest.config.ts',
    ]) {
      await cp(new URL(name, root), join(folder, name), { recursive: true })
    }
    for (const name of ['node_modules', '.cache']) await symlink(fileURLToPath(new URL(name, root)), join(folder, name))
    return new Copy(folder)
  }

  /** Runs the test runner with the changes, and undoes them afterwards. Returns undefined if there is no report. */
  async run(args: readonly string[], changes: readonly Change[]): Promise<Report | undefined> {
    const texts = new Map<string, string>()
    for (const { path } of changes) texts.set(path, await readFile(join(this.folder, path), 'utf8'))
    const report = join(this.folder, 'report.json')
    await rm(report, { force: true })
    // If the Lua scripts cannot be built with the changes, the tests are not run, because they would use the scripts of
    // an earlier build.
    if (await this.#write(broken(texts, changes)))
      await this.#program('vitest', 'run', '--reporter=json', `--outputFile=${report}`, ...args)
    await this.#write(texts)
    const text = await readFile(report, 'utf8').catch(() => undefined)
    return text === undefined ? undefined : (JSON.parse(text) as Report)
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true })
  }

  /** Writes the files. If a file of lua/ is among them, also builds the scripts. Returns false if that failed. */
  async #write(texts: ReadonlyMap<string, string>): Promise<boolean> {
    for (const [path, text] of texts) await writeFile(join(this.folder, path), text)
    const scripts = [...texts.keys()].some(path => path.startsWith('lua/'))
    return !scripts || (await this.#program('tsx', 'scripts/build-lua.ts'))
  }

  /** Runs a program, and returns whether it succeeded. */
  async #program(name: string, ...args: string[]): Promise<boolean> {
    const program = spawn(join('node_modules', '.bin', name), args, {
      cwd: this.folder,
      stdio: 'ignore',
      timeout: WITHIN,
    })
    const [code] = await once(program, 'close')
    return code === 0
  }
}

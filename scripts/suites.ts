/** Runs the test runner several times side by side, each in an environment of its own, and collects the results. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import type { TaskMeta } from 'vitest'

export interface Suite {
  readonly name: string
  readonly files: readonly string[]
  readonly env?: NodeJS.ProcessEnv
  /** The program that runs the suite. Default: this process's own Node. */
  readonly node?: string
}

export interface Outcome {
  readonly name: string
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  readonly seconds: number
  /** What the tests have recorded, for instance which server they used. */
  readonly noted: TaskMeta
  /** Why the suite does not count as passed. */
  readonly trouble: string | undefined
}

const root = fileURLToPath(new URL('..', import.meta.url))
const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs')
const suiteWithinMs = 900_000
const tailLines = 120
/**
 * The largest number of test files that run at the same time: in all suites together, and in one suite. The tests
 * mostly wait, so the number may exceed that of the cores.
 */
const [filesTogether, filesOfOne] = [12, 6]

const running = new Set<ChildProcess>()

/** Ends the suites of an interrupted run. */
export function endSuites(): void {
  for (const child of running) child.kill('SIGTERM')
}

/**
 * Runs the suites, `width` at a time, and returns their outcomes in the same order. Reports and logs go to the folder.
 */
export async function runSuites(suites: readonly Suite[], folder: string, width: number): Promise<Outcome[]> {
  await mkdir(folder, { recursive: true })
  const outcomes: Outcome[] = []
  const pending = suites.entries()
  const files = Math.min(filesOfOne, Math.max(1, Math.floor(filesTogether / width)))
  const worker = async () => {
    for (const [i, suite] of pending) {
      const outcome = await runSuite(suite, folder, files)
      outcomes[i] = outcome
      const verdict = outcome.trouble ? 'FAILED' : `${outcome.passed} passed`
      console.log(`${outcome.name}: ${verdict}, ${outcome.seconds.toFixed(0)} s`)
    }
  }
  await Promise.all(Array.from({ length: width }, worker))
  return outcomes
}

async function runSuite(suite: Suite, folder: string, files: number): Promise<Outcome> {
  const file = join(folder, fileName(suite.name))
  const [report, logFile] = [`${file}.json`, `${file}.log`]
  await rm(report, { force: true })
  const begin = performance.now()
  const log = openSync(logFile, 'w')
  const child = spawn(suite.node ?? process.execPath, [vitest, 'run', ...suite.files], {
    cwd: root,
    stdio: ['ignore', log, log],
    timeout: suiteWithinMs,
    env: { ...process.env, ...suite.env, CI: 'true', BATON_TEST_REPORT: report, VITEST_MAX_WORKERS: `${files}` },
  })
  closeSync(log)
  running.add(child)
  const [code] = await once(child, 'close')
  running.delete(child)
  const seconds = (performance.now() - begin) / 1000
  const text = await readFile(report, 'utf8').catch(() => undefined)
  const outcome = { name: suite.name, seconds, ...(text === undefined ? nothing : countsOf(text)) }
  const trouble = troubleOf(outcome, code)
  if (trouble === undefined) return { ...outcome, trouble }
  const told = stripVTControlCharacters(await readFile(logFile, 'utf8'))
    .trimEnd()
    .split('\n')
  return { ...outcome, trouble: `${trouble}\n${told.slice(-tailLines).join('\n')}` }
}

/** Returns what tests have recorded in their `task.meta`. The report contains it. */
export async function notedIn(report: string): Promise<TaskMeta> {
  return countsOf(await readFile(report, 'utf8')).noted
}

type Counts = Pick<Outcome, 'passed' | 'failed' | 'skipped' | 'noted'>

const nothing: Counts = { passed: 0, failed: 0, skipped: 0, noted: {} }

interface Report {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numPendingTests: number
  readonly numTodoTests: number
  readonly testResults: readonly { readonly assertionResults: readonly { readonly meta: TaskMeta }[] }[]
}

function countsOf(text: string): Counts {
  const report = JSON.parse(text) as Report
  const metas = report.testResults.flatMap(file => file.assertionResults.map(({ meta }) => meta))
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests,
    skipped: report.numPendingTests + report.numTodoTests,
    noted: Object.assign({}, ...metas) as TaskMeta,
  }
}

/**
 * Returns why a suite does not count as passed. A skipped test has not passed. A run has not passed either if it ended
 * with an error, even if all its tests passed.
 */
function troubleOf({ passed, failed, skipped }: Counts, code: unknown): string | undefined {
  if (failed > 0) return `${failed} tests failed`
  if (skipped > 0) return `${skipped} tests were skipped`
  if (passed === 0) return 'no test ran'
  return code === 0 ? undefined : `the run ended with ${String(code)}`
}

/** Returns whether the reported version belongs to the row `name`: `Redis 7.0.15` is a version of `Redis 7.0`. */
export function isVersionOf(name: string, said: string | undefined): boolean {
  return said?.startsWith(`${name}.`) ?? false
}

/**
 * Returns one complaint for each wanted version that has not passed. A version has passed only if the server or Node
 * itself reported that version.
 */
export function complaintsOf(
  wanted: readonly string[],
  outcomes: readonly Outcome[],
  said: (noted: TaskMeta) => string | undefined,
): string[] {
  return wanted.flatMap(name => {
    const outcome = outcomes.find(each => each.name === name)
    if (!outcome) return [`${name}: was not run`]
    if (outcome.trouble !== undefined) return [`${name}: ${outcome.trouble}`]
    const version = said(outcome.noted)
    return isVersionOf(name, version) ? [] : [`${name}: it was ${version ?? 'one that did not say what it is'}`]
  })
}

function fileName(name: string): string {
  return name.toLowerCase().replaceAll(/[^\w.-]+/g, '-')
}

/**
 * `baton run --metrics <file>`: writes what a run does for the textfile collector of Prometheus' node_exporter. The file
 * is replaced as a whole, so the collector never reads half of it.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { messageOf } from '../../local-redis/error-message.ts'
import { exitCodes, Failure, warn } from '../failure.ts'

const states = ['waiting', 'running', 'ended'] as const
type State = (typeof states)[number]

/** Unix time, and durations, in seconds. */
interface Facts {
  state: State
  begun: number
  waited?: number
  ran?: number
  exitCode?: number
  succeeded?: number | undefined
}

const gauges = {
  begin_timestamp_seconds: ['When baton began to wait for the lock.', ({ begun }: Facts) => begun],
  wait_seconds: ['How long baton waited for the lock, until it was granted.', ({ waited }: Facts) => waited],
  duration_seconds: ['How long the command ran, until the lock was released.', ({ ran }: Facts) => ran],
  exit_code: [
    'The exit code of baton: 75 if the lock was lost, 124 if it was not granted.',
    ({ exitCode }: Facts) => exitCode,
  ],
  last_success_timestamp_seconds: [
    'When the command last ended with exit code 0.',
    ({ succeeded }: Facts) => succeeded,
  ],
} as const

export class RunMetrics {
  readonly #file: string | undefined
  readonly #key: string
  readonly #facts: Facts = { state: 'waiting', begun: Date.now() / 1_000 }
  readonly #from = performance.now()

  /**
   * Writes the file for the first time. Throws a Failure if it cannot be written. Without a file, does nothing.
   * `maySkip`: the run may end without the lock and without an error. Such a run must leave the file as it is, so it
   * only tries whether it could be written.
   */
  constructor(file: string | undefined, key: string, maySkip = false) {
    this.#file = file
    this.#key = key.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
    try {
      this.#write(maySkip)
    } catch (error) {
      throw new Failure(`--metrics: ${messageOf(error)}`, exitCodes.notWritten)
    }
  }

  granted(): void {
    this.#facts.state = 'running'
    this.#facts.waited = this.#sinceBegin()
    this.#rewrite()
  }

  ended(exitCode: number): void {
    const { waited } = this.#facts
    // Only a skipped run ends well without the lock.
    if (exitCode === 0 && waited === undefined) return
    if (exitCode === 0) this.#facts.succeeded = Date.now() / 1_000
    this.#facts.state = 'ended'
    if (waited !== undefined) this.#facts.ran = this.#sinceBegin() - waited
    this.#facts.exitCode = exitCode
    this.#rewrite()
  }

  #sinceBegin(): number {
    return (performance.now() - this.#from) / 1_000
  }

  /** A command that runs already is not ended because its metrics cannot be written. */
  #rewrite(): void {
    try {
      this.#write()
    } catch (error) {
      warn(`--metrics: ${messageOf(error)}`)
    }
  }

  #write(onlyTry = false): void {
    if (this.#file === undefined) return
    const part = `${this.#file}.${process.pid}`
    try {
      const succeeded = this.#facts.succeeded ?? this.#lastSuccess(this.#file)
      writeFileSync(part, this.#text({ ...this.#facts, succeeded }))
      if (!onlyTry) renameSync(part, this.#file)
    } finally {
      rmSync(part, { force: true })
    }
  }

  /** Reads from the file when the command under this lock last succeeded; undefined if the file does not say it. */
  #lastSuccess(file: string): number | undefined {
    try {
      const start = `baton_run_last_success_timestamp_seconds{key="${this.#key}"} `
      const line = readFileSync(file, 'utf8')
        .split('\n')
        .find(each => each.startsWith(start))
      return (line && Number(line.slice(start.length))) || undefined
    } catch {
      return undefined
    }
  }

  #text(facts: Facts): string {
    const head = (name: string, help: string) => `# HELP baton_run_${name} ${help}\n# TYPE baton_run_${name} gauge\n`
    const sample = (name: string, labels: string, value: number) =>
      `baton_run_${name}{key="${this.#key}"${labels}} ${value}\n`
    const known = Object.entries(gauges).flatMap(([name, [help, read]]) => {
      const value = read(facts)
      return value === undefined ? [] : [head(name, help) + sample(name, '', value)]
    })
    const state = states.map(name => sample('state', `,state="${name}"`, Number(name === facts.state)))
    return [head('state', '1 for what baton does now.'), ...state, ...known].join('')
  }
}

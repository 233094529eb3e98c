/**
 * `baton run --metrics <file>`: writes what a run does for the textfile collector of Prometheus' node_exporter. The file
 * is replaced as a whole, so the collector never reads half of it.
 */
import { renameSync, rmSync, writeFileSync } from 'node:fs'
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
}

const gauges = {
  begin_timestamp_seconds: ['When baton began to wait for the lock.', ({ begun }: Facts) => begun],
  wait_seconds: ['How long baton waited for the lock, until it was granted.', ({ waited }: Facts) => waited],
  duration_seconds: ['How long the command ran, until the lock was released.', ({ ran }: Facts) => ran],
  exit_code: [
    'The exit code of baton: 75 if the lock was lost, 124 if it was not granted.',
    ({ exitCode }: Facts) => exitCode,
  ],
} as const

export class RunMetrics {
  readonly #file: string | undefined
  readonly #key: string
  readonly #facts: Facts = { state: 'waiting', begun: Date.now() / 1_000 }
  readonly #from = performance.now()

  /** Writes the file for the first time. Throws a Failure if it cannot be written. Without a file, does nothing. */
  constructor(file: string | undefined, key: string) {
    this.#file = file
    this.#key = key.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
    try {
      this.#write()
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

  #write(): void {
    if (this.#file === undefined) return
    const part = `${this.#file}.${process.pid}`
    try {
      writeFileSync(part, this.#text())
      renameSync(part, this.#file)
    } catch (error) {
      rmSync(part, { force: true })
      throw error
    }
  }

  #text(): string {
    const head = (name: string, help: string) => `# HELP baton_run_${name} ${help}\n# TYPE baton_run_${name} gauge\n`
    const sample = (name: string, labels: string, value: number) =>
      `baton_run_${name}{key="${this.#key}"${labels}} ${value}\n`
    const known = Object.entries(gauges).flatMap(([name, [help, read]]) => {
      const value = read(this.#facts)
      return value === undefined ? [] : [head(name, help) + sample(name, '', value)]
    })
    const state = states.map(name => sample('state', `,state="${name}"`, Number(name === this.#facts.state)))
    return [head('state', '1 for what baton does now.'), ...state, ...known].join('')
  }
}

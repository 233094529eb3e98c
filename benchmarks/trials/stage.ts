/** The workers, servers, names and limits of one trial. `clear` ends everything that the trial has started. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Drained, Figures, Rival, Scenario, Setting, Trial } from '../contract.ts'
import type { Census } from '../harness/census.ts'
import { type Command, Worker } from '../harness/crew.ts'
import { type Part, readPart } from '../harness/samples.ts'
import type { Server } from '../harness/server.ts'
import { type Tally, tallyOf } from '../harness/tally.ts'

/** Time limits for the parts of a trial, and the minimum warm-up, in ms. */
export interface Limits {
  /** The minimum time that a loop runs before its measured window. */
  readonly warmUp: number
  /** How long a worker may take to start, import its library and connect. */
  readonly open: number
  /** How long an answer that should come at once may take. */
  readonly answer: number
  /** How long the calls under way at the end of a loop may still take. */
  readonly finish: number
  /** How long a queue may take to be drained. */
  readonly drain: number
  /** How long the next grant may take after a crash. */
  readonly crash: number
}

export const usualLimits: Limits = {
  warmUp: 500,
  open: 30_000,
  answer: 10_000,
  finish: 10_000,
  drain: 30_000,
  crash: 40_000,
}

export interface Terms {
  readonly rival: Rival
  readonly scenario: Scenario
  readonly worker: Command
  /** The first of `servers`. Only a quorum uses further servers. */
  readonly server: Server
  readonly servers: readonly Server[]
  /** The servers' URLs for the workers. With a proxy, these are the proxy's URLs. */
  readonly urls: readonly string[]
  readonly namespace: string
  readonly census: Census | undefined
  readonly seconds: number
  readonly limits: Limits
  readonly signal: AbortSignal
}

/** The results of one trial. */
export type Findings = Pick<Trial, 'figures' | 'handoffs' | 'fairness'>

export class Stage {
  readonly #crew = new Set<Worker>()
  readonly #kill = () => void this.#killAll()
  #files = 0

  private constructor(
    readonly terms: Terms,
    private readonly folder: string,
  ) {
    terms.signal.addEventListener('abort', this.#kill)
  }

  static async set(terms: Terms): Promise<Stage> {
    return new Stage(terms, await mkdtemp(join(tmpdir(), 'baton-bench-')))
  }

  /** Starts another worker. Resolves when the worker is ready. */
  async hire(process: number, waiters: number, lease?: number): Promise<Worker> {
    const { rival, scenario, worker: command, urls, namespace, limits, signal } = this.terms
    signal.throwIfAborted()
    const worker = new Worker(command)
    this.#crew.add(worker)
    const { processes, lock, permits, inUse = 0, writerEvery, groups, groupLimit, servers, apart } = scenario
    const sharing = {
      ...(servers && { servers: urls }),
      ...(apart && { apart }),
      ...(lock && { lock }),
      ...(permits && { permits: permits + inUse }),
      ...(writerEvery && { writerEvery }),
      ...(groups && { groups }),
      ...(groupLimit && { groupLimit }),
    }
    const url = urls[0]!
    const setting: Setting = { rival: rival.name, url, namespace, process, processes, waiters, lease, ...sharing }
    await worker.ask({ op: 'open', setting }, limits.open)
    return worker
  }

  /** Starts the workers with the scenario's waiters. */
  hireAll(lease?: number): Promise<Worker[]> {
    const { processes, waiters } = this.terms.scenario
    return Promise.all(Array.from({ length: processes }, (_, process) => this.hire(process, waiters, lease)))
  }

  /** Returns a new path for a file of samples. */
  file(): string {
    return join(this.folder, `${++this.#files}.samples`)
  }

  read(files: readonly string[]): Promise<Part[]> {
    return Promise.all(files.map((file, process) => readPart(process, file)))
  }

  /** The servers that are not frozen in this scenario. */
  get answering(): readonly Server[] {
    const { servers, scenario } = this.terms
    return servers.slice(0, servers.length - (scenario.frozen ?? 0))
  }

  /**
   * Freezes the last `frozen` servers of the list, as the scenario demands. Rivals that use only the first server are
   * not affected.
   */
  freeze(): void {
    const { servers } = this.terms
    for (const server of servers.slice(this.answering.length)) server.freeze()
  }

  async clear(): Promise<void> {
    const { signal, servers } = this.terms
    signal.removeEventListener('abort', this.#kill)
    await this.#killAll()
    for (const server of servers) server.thaw()
    await rm(this.folder, { recursive: true, force: true })
  }

  async #killAll(): Promise<void> {
    await Promise.all([...this.#crew].map(worker => worker.kill()))
  }
}

/** Adds up the answers of all workers. Throws if no call acquired the lock. */
export function ending(answers: readonly Drained[]): { figures: Figures; cpu: number; tally: Tally | undefined } {
  const total = (of: (answer: Drained) => number) => answers.reduce((sum, answer) => sum + of(answer), 0)
  const samples = total(({ samples }) => samples)
  const unfinished = total(({ unfinished }) => unfinished)
  const errors = total(({ errors }) => errors)
  const error = answers.find(({ error }) => error !== undefined)?.error
  if (samples === 0) {
    throw new Error(
      `no call acquired the lock: ${unfinished} did not return, ${errors} rejected${error ? `: ${error}` : ''}`,
    )
  }
  return {
    figures: { unfinished, errors },
    cpu: total(({ cpu }) => cpu),
    tally: tallyOf(answers.map(({ tally }) => tally)),
  }
}

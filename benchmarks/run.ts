/**
 * A run has three steps:
 *
 *  1. Start the servers, the proxy if a delay is wanted, and the busy loops that keep the cores awake.
 *  2. The census: each rival runs a short contended loop with each kind of lock to be measured. This shows whether the
 *     rival works here at all, and which commands it sends (census.ts).
 *  3. The trials: in each round of each scenario, every rival has one trial, in turn: A B C, A B C, A B C. If the
 *     machine becomes slower or faster, this affects all rivals alike.
 *
 * If a rival is missing, fails or hangs, the report says so and the run continues: the rival's workers are killed, and
 * it has no further rounds in that scenario. Every trial has new workers and new keys. If the server was started for
 * the run, it is emptied after each trial.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../local-redis/error-message.ts'
import {
  type LockKind,
  lockOf,
  type Results,
  type Rival,
  type Scenario,
  type Sharing,
  type Trial,
  takesPart,
} from './contract.ts'
import { type Census, watchCommands } from './harness/census.ts'
import { now } from './harness/clock.ts'
import { usage, usedByOthers } from './harness/machine.ts'
import { type Plan, type Turn, turnsOf } from './harness/plan.ts'
import { resultsOf } from './harness/results.ts'
import { prepare, type Surroundings } from './harness/surroundings.ts'
import { expected, givenUp, runTrial, skipped, unfit } from './harness/trial.ts'
import { workerOf } from './rivals/index.ts'
import type { ScenarioName } from './scenarios.ts'
import { type Terms, usualLimits } from './trials/stage.ts'

export interface Listener {
  /** Receives one line that says which server is used. It never contains a password. */
  announce(line: string): void
  /** Called before the short loops that show which commands this rival sends. */
  look(rival: string): void
  /** Called when the trials begin. All trials together will take about `expected` ms. */
  begin(rounds: number, expected: number): void
  /** Called when a trial begins. The trial will take about `expected` ms. */
  trial(rival: string, scenario: string, round: number, expected: number): void
  /**
   * Called when a trial has ended. The remaining trials will take about `left` ms. If the outcome of this trial makes
   * the run skip other trials, `left` does not include them.
   */
  ended(trial: Trial, left: number): void
}

/** For each kind of lock, the scenario of the short loop that shows which commands a rival sends. */
const firstLooks: Readonly<Record<LockKind, Scenario>> = {
  mutex: firstLook({ lock: 'mutex' }),
  semaphore: firstLook({ lock: 'semaphore', permits: 2 }),
  readWrite: firstLook({ lock: 'readWrite', writerEvery: 4 }),
  quorum: firstLook({ lock: 'quorum', servers: 3 }),
  groups: firstLook({ lock: 'groups', permits: 2, groups: 2, groupLimit: 1 }),
}
/**
 * The contended scenario of each kind of lock. A rival that cannot run this scenario is never measured under
 * contention, so the Redis commands of that rival are counted with a single waiter.
 */
const contended: Readonly<Record<LockKind, ScenarioName>> = {
  mutex: '2x8',
  semaphore: 'semaphore-one',
  readWrite: 'read-write-2x10',
  quorum: 'quorum-2x8-hold5',
  groups: 'groups-jobs',
}
const censusSeconds = 0.3
const censusWarmUp = 50

function firstLook(sharing: Sharing & Pick<Scenario, 'servers'>): Scenario {
  return { name: 'census', title: '', kind: 'loop', processes: 2, waiters: 4, keys: 1, hold: 0, ...sharing }
}

/**
 * Runs the plan. A rival takes part only if it has a kind of lock that some scenario needs. If the run is interrupted,
 * resolves to the results so far. If there are no results yet, rejects with the reason of the interruption.
 */
export async function run(plan: Plan, listener: Listener, signal: AbortSignal): Promise<Results> {
  const around = await prepare(plan, line => listener.announce(line))
  try {
    const rivals = plan.rivals.filter(rival => plan.scenarios.some(scenario => takesPart(rival, scenario)))
    return await new Run({ ...plan, rivals }, listener, signal, around).all()
  } finally {
    await around.stop()
  }
}

class Run {
  readonly #name = `bench-${randomBytes(4).toString('hex')}`
  readonly #notes: string[] = []
  /** The commands that a rival sends for a kind of lock. The keys of this map are texts like 'baton-fair mutex'. */
  readonly #censuses = new Map<string, Census>()
  /** The rivals that cannot run here, each with the reason why not. */
  readonly #absent = new Map<Rival, string>()
  readonly #turns: readonly Turn[]
  /** The results of the trials so far, including skipped trials. */
  readonly #trials: Trial[] = []
  #count = 0

  constructor(
    private readonly plan: Plan,
    private readonly listener: Listener,
    private readonly signal: AbortSignal,
    private readonly around: Surroundings,
  ) {
    this.#turns = turnsOf(plan)
  }

  async all(): Promise<Results> {
    await this.#look()
    this.listener.begin(this.plan.rounds, this.#timeLeft())
    try {
      for (const turn of this.#turns) await this.#take(turn)
    } catch (error) {
      const tried = this.#trials.filter(({ outcome }) => outcome !== 'skipped').length
      if (!this.signal.aborted || tried === 0) throw error
      const by = messageOf(this.signal.reason)
      this.#notes.unshift(
        `The run was interrupted by ${by} after ${tried} of ${tried + this.#toCome().length} measurements.`,
      )
    }
    return resultsOf(this.plan, this.around, this.#trials, this.#notes)
  }

  /** Finds out which rivals are available, and which commands they send. */
  async #look(): Promise<void> {
    for (const rival of this.plan.rivals) {
      const missing = await rival.missing()
      if (missing !== undefined) {
        this.#absent.set(rival, missing)
        continue
      }
      this.listener.look(rival.name)
      const own = this.#turns.filter(
        turn => turn.rival === rival && unfit(turn.scenario, this.around.servers) === undefined,
      )
      for (const kind of new Set(own.map(({ scenario }) => lockOf(scenario)))) await this.#takeCensus(rival, kind)
    }
    for (const reason of new Set(this.#absent.values())) {
      const names = [...this.#absent].filter(([, its]) => its === reason).map(([{ name }]) => name)
      this.#notes.push(`${names.join(', ')} ${names[1] ? 'are' : 'is'} not measured: ${reason}`)
    }
  }

  async #takeCensus(rival: Rival, kind: LockKind): Promise<void> {
    const alone = rival.skips?.[contended[kind]] !== undefined && !rival.mixes
    const scenario: Scenario = alone ? { ...firstLooks[kind], processes: 1, waiters: 1 } : firstLooks[kind]
    if (kind === 'quorum') await this.#untilCounted(rival)
    // All servers of a quorum receive the same commands, so it is enough to watch one server.
    const sighting = await watchCommands(this.around.servers[0].url)
    try {
      const usual = await this.#terms(rival, scenario, new Map())
      const limits = { ...usual.limits, warmUp: censusWarmUp }
      const trial = await runTrial(0, { ...usual, limits, seconds: censusSeconds })
      if (trial.outcome === 'measured') this.#censuses.set(`${rival.name} ${kind}`, sighting.census())
      else this.#notes.push(`${rival.name} failed in the short test before the first round: ${trial.reason}`)
    } finally {
      sighting.stop()
    }
  }

  /**
   * Waits until the rival counts the votes of all servers. A lock over a quorum may ignore a server that was started a
   * moment ago, because such a server may have lost its votes.
   */
  async #untilCounted({ countsServersAfter = 0 }: Rival): Promise<void> {
    const youngest = Math.max(...this.around.servers.map(({ since }) => since))
    const { signal } = this
    const left = Math.max(0, youngest + countsServersAfter - now())
    await sleep(left, undefined, { signal }).catch(() => signal.throwIfAborted())
  }

  #censusOf({ rival, scenario }: Pick<Turn, 'rival' | 'scenario'>): Census | undefined {
    return this.#censuses.get(`${rival.name} ${lockOf(scenario)}`)
  }

  /**
   * Returns why this trial will be skipped, judging by the trials so far. Returns undefined if it will not be skipped.
   */
  #skipped(turn: Turn): string | undefined {
    const { rival, scenario } = turn
    const { rtt } = this.plan
    const elsewhere = rtt > 0 && this.#censusOf(turn)?.size === 0
    const earlier = this.#trials.filter(trial => trial.rival === rival.name && trial.scenario === scenario.name)
    return (
      this.#absent.get(rival) ??
      skipped(rival, scenario) ??
      unfit(scenario, this.around.servers) ??
      (elsewhere ? 'this lock uses another server, to which --rtt cannot add a delay' : undefined) ??
      givenUp(earlier)
    )
  }

  /** Returns the trials that are still to be made, without those that will be skipped. */
  #toCome(): Turn[] {
    return this.#turns.slice(this.#trials.length).filter(turn => this.#skipped(turn) === undefined)
  }

  #timeLeft(): number {
    return this.#toCome().reduce((sum, { scenario }) => sum + expected(scenario, this.plan.seconds), 0)
  }

  async #take(turn: Turn): Promise<void> {
    this.signal.throwIfAborted()
    const { rival, scenario, round } = turn
    const reason = this.#skipped(turn)
    if (reason !== undefined) {
      this.#trials.push({ rival: rival.name, scenario: scenario.name, round, outcome: 'skipped', reason, figures: {} })
      return
    }
    this.listener.trial(rival.name, scenario.name, round, expected(scenario, this.plan.seconds))
    const before = usage()
    const result = await runTrial(round, await this.#terms(rival, scenario, this.#censusOf(turn)))
    // If the rival has its own server, the work of that server would look like work of other programs. So the share of
    // other programs is not recorded.
    const share = this.#censusOf(turn)?.size ? usedByOthers(before, usage()) : undefined
    const trial = share === undefined ? result : { ...result, busy: share }
    this.#trials.push(trial)
    this.listener.ended(trial, this.#timeLeft())
  }

  async #terms(rival: Rival, scenario: Scenario, known: Census | undefined): Promise<Terms> {
    const { servers, urls } = this.around
    const { servers: count = 1 } = scenario
    return {
      rival,
      scenario,
      worker: await workerOf(rival, this.plan.further),
      server: servers[0],
      servers: servers.slice(0, count),
      urls: urls.slice(0, count),
      namespace: `${this.#name}-${++this.#count}`,
      census: known,
      seconds: this.plan.seconds,
      limits: { ...usualLimits, ...this.plan.limits },
      signal: this.signal,
    }
  }
}

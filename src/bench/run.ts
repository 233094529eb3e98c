/**
 * A run: everything that is measured, in this order.
 *
 *   1. a server, the proxy where a delay is wanted, and the busy loops that keep the cores awake
 *   2. the census: each rival runs a short contended loop by itself, which shows whether it works here at all and
 *      which commands are its own (census.ts)
 *   3. for each scenario, for each round, each rival has one trial:   A B C   A B C   A B C
 *      Neighbouring trials are of different rivals, so a machine that gets slower or faster meanwhile does so for all.
 *
 * A rival that is missing, fails or hangs is shown as such and stops nothing: its workers are killed, and the next
 * trial has new ones. Each trial has keys of its own, and a server that was started for this is emptied in between.
 */
import { randomBytes } from 'node:crypto'
import { findServerSource } from '../local-redis/index.ts'
import { type Census, watchCommands } from './census.ts'
import type { Results, Rival, Scenario, Trial } from './contract.ts'
import { type DelayProxy, startDelayProxy } from './delay/proxy.ts'
import { machine, usage, usedByOthers } from './machine.ts'
import { versionOf, workerOf } from './rivals/index.ts'
import { Server } from './server.ts'
import { expected, runTrial, skipped } from './trial.ts'
import { type Limits, type Terms, usualLimits } from './trials/stage.ts'
import { type WarmCores, warmCores } from './warm-cores.ts'

export interface Plan {
  readonly scenarios: readonly Scenario[]
  readonly rivals: readonly Rival[]
  readonly rounds: number
  /** Of the measured part of a loop. */
  readonly seconds: number
  /** ms added between clients and server, there and back. */
  readonly rtt: number
  readonly warmCores: boolean
  /** Undefined: a server is started. */
  readonly url: string | undefined
  readonly limits?: Partial<Limits>
  /** A module with rivals for the workers, beside those that are registered. */
  readonly further?: string
}

export interface Listener {
  /** The one line that says which server is used. It never contains a password. */
  announce(line: string): void
  /** The census of a rival begins. */
  look(rival: string): void
  /** ms that all trials will take, about. */
  begin(expected: number): void
  /** A trial begins, and will take about this long. */
  trial(rival: string, scenario: string, round: number, expected: number): void
  ended(trial: Trial): void
}

const census = { name: 'census', title: '', kind: 'loop', processes: 2, waiters: 4, keys: 1, hold: 0 } as const
const censusSeconds = 0.3
const censusWarmUp = 50
/** Others used more than this share of the machine: the reader has to know. */
const busy = 0.05

export async function run(plan: Plan, listener: Listener, signal: AbortSignal): Promise<Results> {
  const stage = await prepare(plan, listener)
  try {
    return await new Run(plan, listener, signal, stage).all()
  } finally {
    await stage.stop()
  }
}

interface Surroundings {
  readonly server: Server
  readonly proxy: DelayProxy | undefined
  readonly warm: WarmCores | undefined
  stop(): Promise<void>
}

async function prepare(plan: Plan, listener: Listener): Promise<Surroundings> {
  const ends: (() => unknown)[] = []
  const stop = async () => {
    for (const end of ends.reverse()) await end()
  }
  try {
    let { url } = plan
    if (url === undefined) {
      const source = await findServerSource()
      const started = await source.start({ args: ['--maxclients', '20000'] })
      ends.push(() => started.stop())
      url = started.url
      listener.announce(`Redis: ${source.description}, started for this`)
    } else {
      listener.announce(`Redis: ${new URL(url).host}, as it is`)
    }
    const server = await Server.reach(url, plan.url === undefined)
    ends.push(() => server.close())
    const proxy = plan.rtt > 0 ? await startDelayProxy(url, plan.rtt) : undefined
    ends.push(() => proxy?.stop())
    const warm = plan.warmCores ? await warmCores() : undefined
    ends.push(() => warm?.stop())
    return { server, proxy, warm, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

class Run {
  readonly #name = `bench-${randomBytes(4).toString('hex')}`
  readonly #notes: string[] = []
  readonly #censuses = new Map<Rival, Census>()
  /** Why a rival is not tried. */
  readonly #absent = new Map<Rival, string>()
  readonly #trials: Trial[] = []
  #count = 0

  constructor(
    private readonly plan: Plan,
    private readonly listener: Listener,
    private readonly signal: AbortSignal,
    private readonly around: Surroundings,
  ) {}

  async all(): Promise<Results> {
    const { scenarios, rivals, rounds, seconds, rtt } = this.plan
    await this.#look()
    const trials = scenarios.flatMap(scenario =>
      Array.from({ length: rounds }, (_, i) => rivals.map(rival => ({ scenario, round: i + 1, rival }))).flat(),
    )
    const tried = trials.filter(({ rival, scenario }) => this.#skipped(rival, scenario) === undefined)
    this.listener.begin(tried.reduce((sum, { scenario }) => sum + expected(scenario, seconds), 0))
    for (const { rival, scenario, round } of trials) await this.#trial(rival, scenario, round)
    const { server, warm } = this.around
    this.#note()
    const withVersion = await Promise.all(
      rivals.map(async rival => {
        const { name, kind, fair, note } = rival
        const version = await versionOf(rival)
        return { name, kind, fair, note, ...(version === undefined ? {} : { version }) }
      }),
    )
    return {
      format: 1,
      date: new Date().toISOString(),
      machine: {
        ...machine(),
        redis: server.version,
        warmCores: warm !== undefined && warm.refused === undefined,
        rtt,
      },
      options: { rounds, seconds },
      scenarios,
      rivals: withVersion,
      trials: this.#trials,
      notes: this.#notes,
    }
  }

  /** Who is here, and what do they send. */
  async #look(): Promise<void> {
    for (const rival of this.plan.rivals) {
      const missing = await rival.missing()
      if (missing !== undefined) {
        this.#absent.set(rival, missing)
        this.#notes.push(`${rival.name} is not measured: ${missing}`)
        continue
      }
      this.listener.look(rival.name)
      await this.#takeCensus(rival)
    }
  }

  async #takeCensus(rival: Rival): Promise<void> {
    // Who skips contention altogether sends no more in a script than what it sends when it is alone.
    const alone = rival.skips?.['2x8'] !== undefined
    const scenario: Scenario = alone ? { ...census, processes: 1, waiters: 1 } : census
    const sighting = await watchCommands(this.around.server.url)
    try {
      const usual = await this.#terms(rival, scenario, new Map())
      const limits = { ...usual.limits, warmUp: censusWarmUp }
      const trial = await runTrial(0, { ...usual, limits, seconds: censusSeconds })
      if (trial.outcome === 'measured') this.#censuses.set(rival, sighting.census())
      else this.#notes.push(`${rival.name} failed in a first short trial: ${trial.reason}`)
    } finally {
      sighting.stop()
    }
  }

  #skipped(rival: Rival, scenario: Scenario): string | undefined {
    const { rtt } = this.plan
    const elsewhere = rtt > 0 && this.#censuses.get(rival)?.size === 0
    return (
      this.#absent.get(rival) ??
      skipped(rival, scenario) ??
      (elsewhere ? 'it has a server of its own, which the delay does not reach' : undefined)
    )
  }

  async #trial(rival: Rival, scenario: Scenario, round: number): Promise<void> {
    this.signal.throwIfAborted()
    const reason = this.#skipped(rival, scenario)
    if (reason !== undefined) {
      this.#trials.push({ rival: rival.name, scenario: scenario.name, round, outcome: 'skipped', reason, figures: {} })
      return
    }
    this.listener.trial(rival.name, scenario.name, round, expected(scenario, this.plan.seconds))
    const before = usage()
    const result = await runTrial(round, await this.#terms(rival, scenario, this.#censuses.get(rival)))
    // A server of its own is not among our processes, so its work would be taken for that of others.
    const share = this.#censuses.get(rival)?.size ? usedByOthers(before, usage()) : undefined
    const trial = share === undefined ? result : { ...result, busy: share }
    this.#trials.push(trial)
    this.listener.ended(trial)
  }

  async #terms(rival: Rival, scenario: Scenario, known: Census | undefined): Promise<Terms> {
    const { server, proxy } = this.around
    return {
      rival,
      scenario,
      worker: await workerOf(rival, this.plan.further),
      server,
      url: proxy?.url ?? server.url,
      namespace: `${this.#name}-${++this.#count}`,
      census: known,
      seconds: this.plan.seconds,
      limits: { ...usualLimits, ...this.plan.limits },
      signal: this.signal,
    }
  }

  #note(): void {
    const { rounds, rtt } = this.plan
    const { warm, proxy, server } = this.around
    const notes = this.#notes
    if (rounds < 3) notes.push(`Only ${rounds === 1 ? 'one round' : `${rounds} rounds`}: the range says little.`)
    if (warm === undefined) notes.push('Cores were not kept awake: each wake-up may cost 50 to 100 µs more.')
    else if (warm.refused !== undefined) notes.push(`Cores could not be kept awake: ${warm.refused}.`)
    else notes.push('Cores were kept awake by one idle-priority busy loop each.')
    if (proxy) notes.push(`A proxy between clients and server added ${rtt} ms to each round trip.`)
    if (!server.own) notes.push('The server was there before: what else it did counts as if it were for the locks.')
    const shares = this.#trials.map(trial => trial.busy ?? 0)
    const busyTrials = shares.filter(share => share > busy).length
    if (busyTrials > 0) {
      const most = Math.round(Math.max(...shares) * 100)
      notes.push(
        `The machine was busy with something else in ${busyTrials} of ${shares.length} trials, up to ${most} %.`,
      )
    }
    if (usage() === undefined)
      notes.push('Whether the machine was busy with something else, this system does not tell.')
  }
}

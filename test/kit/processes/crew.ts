/** Workers on one key, and the witnesses that they share. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { Child } from '../process.ts'
import { freshKey, plainRedis, redisUrl } from '../redis.ts'
import { Register } from './witness.ts'
import type { FromWorker, Orders, Report } from './worker.ts'

export class Crew {
  readonly key = freshKey('section')
  readonly register = new Register(plainRedis(), this.key)
  /** The marker file. */
  readonly file: string

  private constructor(folder: string) {
    this.file = join(folder, 'inside')
  }

  static async assemble(): Promise<Crew> {
    const folder = await mkdtemp(join(tmpdir(), 'baton-witness-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    return new Crew(folder)
  }

  /** Workers that wait for `go`, one for each order. */
  hire(...orders: Partial<Orders>[]): Promise<Worker[]> {
    return Promise.all(
      orders.map(async order => {
        const worker = new Worker({ url: redisUrl(), key: this.key, rounds: 100, fair: 'never', callers: 1, ...order })
        await worker.ready()
        return worker
      }),
    )
  }

  async expectIncreasingTokens(): Promise<number[]> {
    const tokens = await this.register.log()
    const broken = tokens.findIndex((token, i) => i > 0 && token <= (tokens[i - 1] as number))
    if (broken > 0) throw new Error(`token ${tokens[broken]} came after ${tokens[broken - 1]}`)
    return tokens
  }
}

export class Worker {
  readonly child: Child

  constructor(orders: Orders) {
    this.child = new Child(new URL('worker.ts', import.meta.url), [JSON.stringify(orders)])
  }

  async ready(): Promise<void> {
    await this.child.message<FromWorker>(({ type }) => type === 'ready')
  }

  go(): void {
    this.child.send({ type: 'go' })
  }

  /** Resolves just before its fate strikes. */
  async fated(): Promise<void> {
    await this.child.message<FromWorker>(({ type }) => type === 'fated')
  }

  async report(): Promise<Report> {
    const done = await this.child.message<FromWorker>(({ type }) => type === 'done', 60_000)
    return (done as Extract<FromWorker, { type: 'done' }>).report
  }
}

/** What the reports of these workers say together. */
export async function reportOf(workers: readonly Worker[]): Promise<Report> {
  const reports = await Promise.all(workers.map(worker => worker.report()))
  const sum = (field: keyof Report) => reports.reduce((all, report) => all + report[field], 0)
  return { sections: sum('sections'), overlaps: sum('overlaps'), refused: sum('refused'), lost: sum('lost') }
}

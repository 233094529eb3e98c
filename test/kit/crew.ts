/** Runs processes that work under one lock, and lets the history checker judge what they recorded. */
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { decodeClaim, decodePermitsClaim } from '../../src/kinds/claim.ts'
import type { HistoryEvent } from '../history/events.ts'
import { queueEntries, violationsIn } from '../history/recorded.ts'
import { now, Recorder, readEvents } from '../history/recorder.ts'
import { readRegister } from '../history/witnesses.ts'
import type { FromWorker, Orders } from './crew-worker.ts'
import type { KindName } from './kind-clients.ts'
import { Child } from './process.ts'
import { freshKey, plainRedis, redisUrl } from './redis.ts'
import { emptyFolder } from './temp.ts'

/** Time between two reads of the queue in Redis, in ms. */
const LOOK = 25

export class Crew {
  readonly key = freshKey('section')
  readonly workers: Worker[] = []
  readonly #redis = plainRedis()
  readonly #folder: string
  readonly #recorder: Recorder
  #kind: KindName = 'mutex'

  private constructor(folder: string) {
    this.#folder = folder
    this.#recorder = new Recorder(join(folder, 'history'))
    const looks = setInterval(() => this.#look(), LOOK)
    onTestFinished(() => {
      clearInterval(looks)
      this.#recorder.close()
    })
  }

  /** Starts one worker process for each entry of `orders`. The workers begin when `go` is called. */
  static async hire(...orders: Partial<Orders>[]): Promise<Crew> {
    const crew = new Crew(await emptyFolder())
    const { key } = crew
    crew.#kind = orders[0]?.kind ?? 'mutex'
    const place = { url: redisUrl(), key, kind: crew.#kind, folder: crew.#folder }
    for (const [i, order] of orders.entries()) {
      const defaults = { worker: `w${i}`, rounds: 100, fair: 'never', callers: 1 } as const
      crew.workers.push(new Worker({ ...defaults, ...place, ...order }))
    }
    await Promise.all(crew.workers.map(worker => worker.ready()))
    return crew
  }

  /** Records that SIGKILL ended the worker. Either the worker itself or the test has sent the signal. */
  died(worker: Worker): void {
    this.#recorder.record('died', { worker: worker.name })
  }

  /**
   * Returns all writes that the register has accepted so far. Each write is the token and the id of a section's hold.
   */
  written(): Promise<[token: number, id: string][]> {
    return readRegister(this.#redis, this.key)
  }

  async history(): Promise<HistoryEvent[]> {
    const { key } = this
    const events: HistoryEvent[] = [{ t: now(), kind: 'register', key, entries: await this.written() }]
    for await (const event of readEvents(join(this.#folder, 'history'))) events.push(event)
    return events
  }

  async violations(): Promise<string[]> {
    return violationsIn(await this.history())
  }

  async #look(): Promise<void> {
    const { key } = this
    const from = now()
    const lock = this.#kind === 'mutex' ? `lock:{${key}}` : `lock:%${this.#kind}/{${key}}`
    const entries = queueEntries(
      await this.#redis.zrange(`${lock}:q`, '0', '-1', 'WITHSCORES').catch(() => []),
      this.#kind === 'mutex' ? decodeClaim : decodePermitsClaim,
    )
    if (entries.length > 1) this.#recorder.record('queue', { key, from, entries })
  }
}

export class Worker {
  readonly name: string
  readonly child: Child

  constructor(orders: Orders) {
    this.name = orders.worker
    this.child = new Child(new URL('crew-worker.ts', import.meta.url), [JSON.stringify(orders)])
  }

  ready(): Promise<FromWorker> {
    return this.#said('ready')
  }

  go(): void {
    this.child.send({ type: 'go' })
  }

  /** Resolves when the worker is about to send itself the signal `fate`. */
  fated(): Promise<FromWorker> {
    return this.#said('fated')
  }

  done(): Promise<FromWorker> {
    return this.#said('done')
  }

  #said(type: FromWorker['type']): Promise<FromWorker> {
    return this.child.message<FromWorker>(message => message.type === type, 60_000)
  }
}

/**
 * The waiters of one worker process, which carry out the orders.
 *
 * Everything that is measured happens in `#turn`: ask, hold, release. The clock is read directly before and directly
 * after each call, so the times contain nothing but the call. If a turn never ends, the worker leaves it as it is; the
 * runner later kills the process.
 */
import { setImmediate as breathe, setTimeout as sleep } from 'node:timers/promises'
import {
  type Contender,
  type Drained,
  type Order,
  type Release,
  type Report,
  type Rival,
  type RivalClient,
  reads,
  type Setting,
} from '../contract.ts'
import { now, until } from '../harness/clock.ts'
import { tallyOf } from '../harness/tally.ts'
import { SampleStore } from './samples.ts'

type Of<Op extends Order['op']> = Extract<Order, { op: Op }>

export class Station {
  #samples = new SampleStore()
  #errors = 0
  #error: string | undefined
  /** The turns (ask, hold, release) that have not ended. */
  #underWay = new Set<Promise<void>>()
  #cpu = process.cpuUsage()
  #kept: readonly Release[] = []
  #turnHeap: number | undefined

  private constructor(
    private readonly setting: Setting,
    /** The clients: one for all waiters, or one for each waiter. */
    private readonly clients: readonly RivalClient[],
    private readonly contenders: readonly Contender[],
  ) {}

  static async open(rival: Rival, setting: Setting): Promise<Station> {
    if (!rival.open) throw new Error(`${rival.name} is not run by this kind of worker`)
    const clients = []
    for (let i = 0; i < (setting.apart ? setting.waiters : 1); i++) clients.push(await rival.open(setting))
    const contenders = []
    for (let waiter = 0; waiter < setting.waiters; waiter++) {
      const client = clients[waiter % clients.length]!
      contenders.push(await client.contender(waiter, reads(setting, waiter)))
    }
    return new Station(setting, clients, contenders)
  }

  async loop({ startAt, gap, openAt, endAt, giveUpAt, hold, keys, file }: Of<'loop'>): Promise<Drained> {
    this.#begin()
    await until(startAt)
    this.#cpu = process.cpuUsage()
    const cpu = until(endAt).then(() => process.cpuUsage(this.#cpu))
    for (const [waiter, contender] of this.contenders.entries()) {
      if (gap > 0) await until(startAt + waiter * gap)
      this.#watch(this.#round(contender, waiter, this.#key(waiter % keys), hold, openAt, endAt))
    }
    const { user, system } = await cpu
    return this.#drain('loop', giveUpAt, file, () => user + system)
  }

  /** Runs turns (ask, hold, release) of one waiter until `endAt`. */
  async #round(
    contender: Contender,
    waiter: number,
    key: string,
    hold: number,
    openAt: number,
    endAt: number,
  ): Promise<void> {
    for (let asked = now(); asked < endAt; asked = now()) {
      const errors = this.#errors
      await this.#turn(contender, waiter, key, asked, hold, openAt)
      // Without this pause, a lock that rejects immediately would block the event loop.
      if (this.#errors > errors) await breathe()
    }
  }

  async hold({ count = 1 }: Of<'hold'>): Promise<Report> {
    const [client] = this.clients as [RivalClient]
    const extra = Array.from({ length: count }, (_, i) => client.contender(this.contenders.length + i, false))
    const contenders = await Promise.all(extra)
    this.#kept = await Promise.all(contenders.map(contender => contender.acquire(this.#key(0))))
    return { op: 'hold', at: now() }
  }

  async drop(): Promise<Report> {
    const kept = this.#kept
    if (kept.length === 0) throw new Error('drop without hold')
    this.#kept = []
    const calledAt = now()
    await Promise.all(kept.map(release => release()))
    return { op: 'drop', calledAt, returnedAt: now() }
  }

  async queue({ startAt, gap, hold }: Of<'queue'>): Promise<Report> {
    this.#begin()
    await until(startAt)
    this.#cpu = process.cpuUsage()
    const key = this.#key(0)
    for (const [waiter, contender] of this.contenders.entries()) {
      if (gap > 0) await until(startAt + waiter * gap)
      this.#watch(this.#turn(contender, waiter, key, now(), hold))
    }
    return { op: 'queue', at: now() }
  }

  collect({ giveUpAt, file }: Of<'collect'>): Promise<Drained> {
    return this.#drain('collect', giveUpAt, file, () => {
      const { user, system } = process.cpuUsage(this.#cpu)
      return user + system
    })
  }

  /**
   * Reports the memory in use. `heap` does not include the memory that the benchmark itself needs for the waiters'
   * unfinished turns.
   */
  async memory(): Promise<Report> {
    this.#turnHeap ??= await this.#measureTurn()
    const { rss, heapUsed } = await afterCollection()
    return { op: 'memory', resident: rss, heap: heapUsed - this.#underWay.size * this.#turnHeap }
  }

  /** Measures the heap that the benchmark itself needs for one waiter. Uses a lock that is never granted. */
  async #measureTurn(): Promise<number> {
    const turns = 1_000
    const never = new Promise<void>(() => {})
    const nobody = {
      async acquire(): Promise<Release> {
        await never
        return async () => {}
      },
    }
    const underWay = this.#underWay
    this.#underWay = new Set()
    const before = await afterCollection()
    for (let i = 0; i < turns; i++) this.#watch(this.#turn(nobody, 0, this.#key(0), now(), 0))
    const { heapUsed } = await afterCollection()
    this.#underWay = underWay
    return (heapUsed - before.heapUsed) / turns
  }

  async close(): Promise<Report> {
    await Promise.all(this.clients.map(client => client.close()))
    return { op: 'close' }
  }

  /** Runs one turn: ask, hold, release. `asked` is the current time, which the caller has just read. */
  async #turn(
    contender: Contender,
    waiter: number,
    key: string,
    asked: number,
    hold: number,
    openAt = 0,
  ): Promise<void> {
    const samples = this.#samples
    try {
      if (contender.run) {
        const { acquired, released } = await contender.run(key, hold)
        samples.finish(samples.add(waiter, asked, acquired, released), now())
        return
      }
      const release = await contender.acquire(key)
      const acquired = now()
      if (acquired + hold < openAt) await until(openAt)
      else if (hold > 0) await sleep(hold)
      const released = now()
      const sample = samples.add(waiter, asked, acquired, released)
      await release()
      samples.finish(sample, now())
    } catch (error) {
      this.#errors += 1
      this.#error ??= error instanceof Error ? `${error.name}: ${error.message}` : String(error)
    }
  }

  #key(index: number): string {
    return `${this.setting.namespace}:k${index}`
  }

  #begin(): void {
    this.#samples = new SampleStore()
    this.#errors = 0
    this.#error = undefined
    this.#underWay = new Set()
  }

  #watch(turn: Promise<void>): void {
    const underWay = this.#underWay
    underWay.add(turn)
    turn.finally(() => underWay.delete(turn))
  }

  async #drain(op: Drained['op'], giveUpAt: number, file: string, cpu: () => number): Promise<Drained> {
    const gaveUp = new AbortController()
    const limit = sleep(Math.max(0, giveUpAt - now()), undefined, { signal: gaveUp.signal }).catch(() => {})
    await Promise.race([Promise.all(this.#underWay), limit])
    gaveUp.abort()
    const used = cpu()
    const unfinished = this.#underWay.size
    const samples = await this.#samples.write(file)
    const tally = tallyOf(this.clients.map(client => client.tally?.()))
    const error = this.#error === undefined ? {} : { error: this.#error }
    return { op, samples, unfinished, errors: this.#errors, cpu: used, ...(tally && { tally }), ...error }
  }
}

/** Returns the memory in use after all garbage is collected. */
async function afterCollection(): Promise<NodeJS.MemoryUsage> {
  for (let i = 0; i < 2; i++) {
    globalThis.gc?.()
    await sleep(10)
  }
  return process.memoryUsage()
}

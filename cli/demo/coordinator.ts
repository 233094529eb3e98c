/**
 * The sale from beginning to end. The story:
 *
 *  1. Four workers start. Each receives orders until it has 12 in hand. For each order that it answers, it receives a
 *     new one. So about 47 requests always wait for the coupon's lock while one order is served.
 *  2. After 12 sales, W2 has to stop inside its next critical section: the customer has paid, W2 holds the lock, and
 *     the sale is not written yet. W2 is then killed with SIGKILL. Nobody can release its lock, so the others wait
 *     until the lease ends. The orders that W2 had in hand go back to the front of the list, and a new process replaces
 *     W2.
 *  3. After 28 sales, W3 has to stop in the same way. It is frozen with SIGSTOP until its lease is long over. Meanwhile
 *     the others sell all coupons. When W3 continues, it does not know this. It tries to write a sale based on a stock
 *     that it read long ago. The shop refuses the write because it has seen newer fencing tokens. W3 learns that it
 *     lost the lock, and requests the lock again for the same order.
 *  4. When every order has an answer, the workers leave, and the coordinator reads the shop's final state.
 *
 * Without the lock, the story is the same, except that no request waits and the late write succeeds.
 *
 * However the run ends, it leaves no process and no key behind. Instead of waiting forever, the run fails if a worker
 * or Redis dies unexpectedly, or if the sale takes longer than `patience`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { openConditions } from './conditions.ts'
import { dismiss, type Worker } from './crew.ts'
import type { Ground } from './ground.ts'
import { type Ledger, openLedger } from './ledger.ts'
import type { FromWorker, Paused } from './messages.ts'
import type { Order } from './orders.ts'
import { now, sale, seconds } from './sale.ts'
import { type History, timeToNext } from './witness.ts'

export interface SaleOptions {
  ground: Ground
  orders: readonly Order[]
  locked: boolean
  signal: AbortSignal
  /** How long the sale may take before it fails, in ms. */
  patience: number
  say: Say
  /** Called once, at the start, with an object that always has the present state of the sale (`stage`). */
  watch: (stage: Stage) => void
}

export type Say = (tone: 'plain' | 'good' | 'bad' | 'progress', text: string) => void

export interface Stage {
  readonly startedAt: number
  readonly orders: number
  readonly locked: boolean
  readonly ledger: Ledger
  readonly crew: readonly Worker[]
  /** Labels of the workers whose requests wait, in the order of the queue. */
  queue: readonly string[]
}

export async function runSale(options: SaleOptions): Promise<History> {
  const { ground, orders, locked, signal, say } = options
  const { shop, words } = ground
  const coupon = theCoupon(orders)
  const locks = locked ? ground.client() : null
  const ledger = openLedger(sale.stock)
  const line = [...orders]
  const crew: Worker[] = []
  const stage: Stage = { startedAt: now(), orders: orders.length, locked, ledger, crew, queue: [] }
  const pauses = new Map<Worker, Paused>()
  const { until, check, fail } = openConditions()
  let hands = 0 // the most orders that a worker may have in hand

  const allAnswered = () => ledger.answered === orders.length

  // --- The workers -----------------------------------------------------------------------------------------------

  function heard(worker: Worker, message: FromWorker): void {
    if (message.kind === 'ready') {
      if (worker.state === 'starting') worker.state = 'working'
    } else if (message.kind === 'entered') ledger.entered(worker.pid, message)
    else if (message.kind === 'lost') ledger.lost(message)
    else if (message.kind === 'failed') fail(new Error(`${worker.label} failed: ${message.reason}`))
    else if (message.kind === 'paused') {
      ledger.paused(message)
      pauses.set(worker, message)
    } else if (message.kind === 'left') {
      ledger.left(message)
      worker.inHand.delete(message.order)
      worker.answered += 1
      if (ledger.answered % 100 === 0) say('progress', `${ledger.answered} of ${orders.length} orders answered`)
    }
    deal()
    check()
  }

  function start(place: number): Worker {
    const died = (worker: Worker, how: string) => fail(new Error(`${worker.label} ended unexpectedly: ${how}`))
    const worker = ground.hire(place, locked, { heard, died })
    crew[place] = worker
    return worker
  }

  /** Deals orders, one to each worker in turn, until there are no orders left or no worker has room for another. */
  function deal(): void {
    for (let dealt = true; dealt; ) {
      dealt = false
      for (const worker of crew) {
        if (worker.state !== 'working' || worker.inHand.size >= hands) continue
        const order = line.shift()
        if (!order) return
        worker.inHand.set(order.id, order)
        worker.send({ kind: 'order', id: order.id, customer: order.customer, coupon: order.coupon })
        dealt = true
      }
    }
  }

  // --- The story -------------------------------------------------------------------------------------------------

  /** Waits until the worker has stopped inside a critical section. Returns null if the sale ends first. */
  async function stopInside(worker: Worker): Promise<Paused | null> {
    worker.send({ kind: 'pause' })
    await until(() => pauses.has(worker) || allAnswered())
    return pauses.get(worker) ?? null
  }

  /**
   * Waits until the worker has ended. Rejects if the run fails first, so that the sale does not continue and no other
   * worker is started. `worker.ended` alone would not reject.
   */
  async function hasEnded(worker: Worker): Promise<void> {
    let ended = false
    worker.ended.then(() => {
      ended = true
      check()
    })
    await until(() => ended)
  }

  async function crash(victim: Worker): Promise<void> {
    const paused = await stopInside(victim)
    if (!paused) return
    const { order } = paused
    const at = now()
    victim.signal('SIGKILL')
    victim.state = 'killed'
    say(
      'bad',
      `${words.killed} ${victim.label}${locked ? ', which held the lock' : ''}; ${order} is paid, but not saved`,
    )
    await hasEnded(victim)
    // The kill is recorded after `hasEnded`, because all messages of the victim have been read by then.
    ledger.killed(victim.pid, at)
    const returned = [...victim.inHand.values()]
    line.unshift(...returned)
    const heir = start(victim.place)
    await until(() => heir.state !== 'starting')
    say(
      'plain',
      `${heir.label} started again as ${words.worker} ${heir.pid}; ${returned.length} orders wait for a worker again`,
    )
    const next = () => timeToNext([...ledger.sections.values()], at)
    await until(() => next() !== null)
    if (locked) say('good', `a worker got the lock ${seconds(next()!)} after the kill, when the lease ended`)
  }

  async function freeze(victim: Worker): Promise<void> {
    const tellOthers = (pid: number | null) => {
      for (const worker of crew) if (worker !== victim) worker.send({ kind: 'frozen', pid })
    }
    const paused = await stopInside(victim)
    if (!paused) return
    const { section, order, stockRead } = paused
    const at = now()
    victim.signal('SIGSTOP')
    victim.state = 'frozen'
    ledger.froze(victim.pid, at, section)
    victim.send({ kind: 'go' }) // this message stays in the channel until the frozen worker continues
    tellOthers(victim.pid)
    say(
      'bad',
      `${words.froze} ${victim.label}${locked ? ', which held the lock' : ''}; ${victim.label} had read the stock: ${stockRead}`,
    )
    await until(() => now() - at > sale.lease + sale.frozenBeyondLease)
    ledger.thawed(now())
    victim.state = 'working'
    victim.signal('SIGCONT')
    tellOthers(null)
    say(
      'plain',
      `${victim.label} continues after ${seconds(now() - at)} and writes that ${stockRead - 1} coupons are left; in fact, ${ledger.stock} are left`,
    )
    await until(() => ledger.lateWrite !== null)
    if (ledger.lateWrite === 'accepted')
      say('bad', `late write accepted: it set the stock to ${stockRead - 1}, and sold ${order}`)
    else say('good', 'late write refused: the shop has seen newer fencing tokens')
  }

  async function story(): Promise<void> {
    await until(() => crew.every(worker => worker.state === 'working'))
    // Deals each worker one order, then a second one, and so on. If all orders were dealt at once, the queue would
    // consist of one block per worker.
    for (hands = 1; hands < sale.inFlight; hands += 1) {
      deal()
      await sleep(5)
    }
    deal()
    await until(() => ledger.sold >= sale.killAfter)
    const crashed = crash(crew[1]!)
    // With the lock, the story continues only when a new W2 has replaced the dead W2. Without the lock, the other
    // workers keep selling after the kill, and the sale would be over before the new W2 is ready. It would then be too
    // late to freeze W3. So without the lock, the story does not wait here.
    if (locked) await crashed
    await Promise.all([crashed, until(() => ledger.sold >= sale.freezeAfter).then(() => freeze(crew[2]!))])
  }

  async function watchQueue(): Promise<void> {
    const state = await locks!.inspect(coupon)
    ledger.snapshots.push(state.waiters.map(waiter => waiter.id))
    stage.queue = state.waiters.map(waiter => waiter.label)
  }

  let looking = false
  const ticks = setInterval(() => {
    check() // at every tick, because some conditions depend on the time
    if (!locks || looking) return
    looking = true
    watchQueue()
      .catch(fail)
      .finally(() => {
        looking = false
      })
  }, sale.snapshotEvery)
  const alarm = setTimeout(() => fail(new Error(describeStuck(stage, line))), options.patience)
  const interrupted = () => fail(signal.reason)
  signal.addEventListener('abort', interrupted)

  let finished = false
  try {
    signal.throwIfAborted()
    await shop.open(coupon, sale.stock)
    for (let place = 0; place < sale.workers; place += 1) start(place)
    options.watch(stage)
    await Promise.all([story(), until(allAnswered)])
    finished = true
    stage.queue = []
    return await history()
  } finally {
    clearInterval(ticks)
    clearTimeout(alarm)
    signal.removeEventListener('abort', interrupted)
    await dismiss(crew, finished ? 3_000 : 0)
    await locks?.close()
    await ground.wipe().catch(error => {
      if (finished) throw error // if the run has failed, the run's error is reported instead of this one
    })
  }

  async function history(): Promise<History> {
    const { killedAt, frozen, lateWrite, snapshots } = ledger
    const books = await shop.close(
      coupon,
      orders.map(order => order.id),
    )
    const sections = [...ledger.sections.values()]
    return { stock: sale.stock, orders, ...books, sections, snapshots, killedAt, frozen, lateWrite }
  }
}

function theCoupon(orders: readonly Order[]): string {
  const coupons = new Set(orders.map(order => order.coupon))
  const [coupon] = coupons
  if (coupon === undefined || coupons.size > 1)
    throw new Error(`flash-sale.csv: all orders must be for one coupon, but they are for ${coupons.size} coupons`)
  return coupon
}

function describeStuck({ startedAt, orders, ledger, crew, queue }: Stage, line: readonly Order[]): string {
  const { latest, lateWrite } = ledger
  return [
    `The sale did not end in ${seconds(now() - startedAt)}: ${ledger.answered} of ${orders} orders answered, ${line.length} not given out yet`,
    ...crew.map(
      worker => `${worker.label} (process ${worker.pid}) is ${worker.state}, with ${worker.inHand.size} orders in hand`,
    ),
    `last critical section: ${latest ? `${latest.order} in process ${latest.pid}, ${latest.how}, begun ${seconds(now() - latest.begin)} ago` : 'none'}`,
    `waiting in the queue: ${queue.join(' ') || 'nobody'}`,
    `killed: ${ledger.killedAt !== null}, frozen: ${ledger.frozen !== null}, late write: ${lateWrite ?? 'not seen'}`,
  ].join('\n  ')
}

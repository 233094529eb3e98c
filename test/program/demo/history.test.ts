/**
 * The demo is a sale of coupons under a lock, and it judges the sale on its own (cli/demo/witness.ts). In this test,
 * the history checker of the tests also judges the sale, from the same observations. The published demo does not
 * contain this checker.
 */
import { expect, onTestFinished, test } from 'vitest'
import { runSale, type Stage } from '../../../cli/demo/coordinator.ts'
import { onRedis } from '../../../cli/demo/ground.ts'
import { inMemory } from '../../../cli/demo/in-memory.ts'
import { loadOrders } from '../../../cli/demo/orders.ts'
import { now, sale } from '../../../cli/demo/sale.ts'
import type { History } from '../../../cli/demo/witness.ts'
import { Memory, violationsIn } from '../../history/recorded.ts'
import { freshKey, plainRedis, redisUrl } from '../../kit/redis.ts'

const key = 'the coupon'
/** Time between two checks for a new snapshot of the queue, in ms. */
const LOOK = 10

interface Sight {
  readonly from: number
  readonly t: number
  readonly ids: readonly string[]
}

/**
 * Records each snapshot that the demo takes of the queue. A timer checks for new snapshots every `LOOK` ms. A snapshot
 * gets the time of the check that finds it, which is slightly too late. Because of this, the history checker may
 * overlook waiters, but it finds no false violation.
 */
function watchQueue({ ledger }: Stage, sights: Sight[]): void {
  let from = now()
  const looks = setInterval(() => {
    const t = now()
    for (const ids of ledger.snapshots.slice(sights.length)) sights.push({ from, t, ids })
    from = t
  }, LOOK)
  onTestFinished(() => clearInterval(looks))
}

function noteQueue(memory: Memory, sights: readonly Sight[], { sections }: History): void {
  const workers = new Map(sections.map(({ hold, pid }) => [hold, String(pid)]))
  for (const { from, t, ids } of sights) {
    // The demo does not know the waiters' tickets. The checker only checks that a waiter's ticket stays the same, so
    // the waiter's id is used as its ticket. A waiter's process id is known from its critical section. A waiter that
    // was never granted the lock has no critical section. The checker does not compare such waiters, so their process
    // id is empty.
    const entries = ids.map((id): [string, string, string, string] => [id, id, workers.get(id) ?? '', id])
    memory.record('queue', { key, from, entries }, t)
  }
}

function noteSections(memory: Memory, { sections, frozen, killedAt }: History): void {
  for (const { id, pid, hold, token, requestedAt, begin, end, how } of sections) {
    const [worker, attempt] = [String(pid), id]
    const grant = { worker, attempt, key, id: hold!, owner: hold!, token: token!, via: 'handoff' } as const
    memory.record('request', { worker, attempt, key, mode: 'fair', owner: hold! }, requestedAt)
    memory.record('grant', { ...grant, deadline: how === 'released' ? begin + sale.lease : end }, begin)
    if (how === 'released') {
      memory.record('release', { worker, id: hold!, held: true }, end)
      memory.record('released', { worker, id: hold!, result: true }, end)
    } else if (how === 'lost') memory.record('lost', { worker, id: hold! }, frozen!.to)
    else memory.record('died', { worker }, killedAt!)
  }
  memory.record('stall', { worker: String(frozen!.pid), from: frozen!.from }, frozen!.to)
}

const grounds = {
  'on Redis': () => onRedis(plainRedis(), redisUrl(), freshKey('demo'), async () => {}),
  'in memory': inMemory,
}

test.each(Object.entries(grounds))(
  'the checker finds nothing in a sale with the lock, %s',
  { timeout: 90_000 },
  async (_, make) => {
    // The workers run from source.
    const before = process.env['NODE_OPTIONS']
    process.env['NODE_OPTIONS'] = '--import tsx'
    onTestFinished(() => {
      if (before === undefined) delete process.env['NODE_OPTIONS']
      else process.env['NODE_OPTIONS'] = before
    })
    const sights: Sight[] = []
    const history = await runSale({
      ground: make(),
      orders: await loadOrders(),
      locked: true,
      signal: new AbortController().signal,
      patience: 60_000,
      say: () => {},
      watch: stage => watchQueue(stage, sights),
    })
    const memory = new Memory()
    noteSections(memory, history)
    noteQueue(memory, sights, history)
    expect(violationsIn(memory.events)).toEqual([])
    expect(sights.length).toBeGreaterThan(10)

    // The checker must also find violations. So add a critical section that overlaps with one of the recorded critical
    // sections.
    const { pid, begin, token } = history.sections.find(({ how }) => how === 'released')!
    const other = { worker: `not ${pid}`, attempt: 'other', key, id: 'other', owner: 'other', via: 'handoff' } as const
    memory.record('grant', { ...other, token: token! + 1, deadline: begin + 1 }, begin + 0.5)
    expect(violationsIn(memory.events).join('\n')).toMatch(/I1: .* both held/)
  },
)

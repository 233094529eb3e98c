import { setTimeout as sleep } from 'node:timers/promises'
import { groupOf, type Rival, type RivalClient, type Setting } from '../contract.ts'
import { now } from '../harness/clock.ts'
import { allBut } from '../scenarios.ts'
import { load, notInstalled } from './installed.ts'

type Library = typeof import('bullmq')

export const bullmq: Rival = {
  name: 'bullmq',
  kind: 'rival',
  fair: true,
  locks: ['groups'],
  package: 'bullmq',
  note: 'The open edition: a queue for each tenant with setGlobalConcurrency, and a worker for it in each process. Nothing limits all queues together.',
  runtime: 'node',
  skips: allBut(['groups-jobs'], 'it has jobs and no lock, and needs a worker for each group in each process'),
  missing: () => notInstalled('bullmq'),
  open,
}

/** Any process may run a job. Its result tells the process that has added it when it ran. */
async function open(setting: Setting): Promise<RivalClient> {
  const { Queue, QueueEvents, Worker } = await load<Library>('bullmq')
  const { url, namespace, processes, process, waiters, groups, groupLimit = 1 } = setting
  const connection = { url }
  const count = typeof groups === 'object' ? groups.length : groups
  const tenants = await Promise.all(
    Array.from({ length: count ?? 1 }, async (_, group) => {
      const name = `${namespace}-${group}`
      const [queue, events] = [new Queue(name, { connection }), new QueueEvents(name, { connection })]
      events.setMaxListeners(0)
      await Promise.all([queue.setGlobalConcurrency(groupLimit), events.waitUntilReady()])
      const work = async ({ data }: { data: { hold: number } }) => {
        const acquired = now()
        await sleep(data.hold)
        return { acquired, released: now() }
      }
      const worker = new Worker(name, work, { connection, concurrency: groupLimit })
      await worker.waitUntilReady()
      return { queue, events, worker }
    }),
  )
  const all = (action: (tenant: (typeof tenants)[number]) => Promise<unknown>) => Promise.all(tenants.map(action))
  return {
    contender(index) {
      // A waiter that the order 'hold' adds stops all queues.
      const acquire = async () => {
        await all(({ queue }) => queue.pause())
        return () => all(({ queue }) => queue.resume())
      }
      if (index >= waiters) return { acquire }
      const { queue, events } = tenants[groupOf(setting, processes, process, index)]!
      const run = async (_: string, hold: number) => (await queue.add('job', { hold })).waitUntilFinished(events)
      return { acquire, run }
    },
    async close() {
      await all(({ queue, events, worker }) => Promise.all([queue.close(), events.close(), worker.close()]))
    },
  }
}

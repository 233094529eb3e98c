import { Redis } from 'ioredis'
import { groupOf, type Release, type Rival, type RivalClient, type Setting } from '../contract.ts'
import { allBut } from '../scenarios.ts'
import { load, notInstalled } from './installed.ts'

type Library = typeof import('bottleneck')

export const bottleneck: Rival = {
  name: 'bottleneck',
  kind: 'rival',
  fair: false,
  locks: ['groups'],
  package: 'bottleneck',
  note: 'A clustered limiter (maxConcurrent) for each group, chained to one for all. The queue is in the process, the counts are in Redis.',
  runtime: 'node',
  skips: allBut(['groups-jobs'], 'its queue is in the process, so the server has none to drain'),
  missing: () => notInstalled('bottleneck'),
  open,
}

async function open(setting: Setting): Promise<RivalClient> {
  const { default: Bottleneck } = await load<Library>('bottleneck')
  const { processes, process, waiters, permits = 1, groupLimit = permits } = setting
  const connection = new Bottleneck.IORedisConnection({ client: new Redis(setting.url) })
  const limiters = new Map<string, InstanceType<Library['default']>>()
  const limiter = (id: string, maxConcurrent: number) => {
    const made = limiters.get(id) ?? new Bottleneck({ id, maxConcurrent, datastore: 'ioredis', connection })
    limiters.set(id, made)
    return made
  }
  return {
    contender: index => ({
      acquire(key) {
        const all = limiter(key, permits)
        // The waiters that the order 'hold' adds take all permits, so they have no group.
        const group = groupOf(setting, processes, process, index)
        const own = index < waiters ? limiter(`${key}:${group}`, groupLimit).chain(all) : all
        return new Promise<Release>((resolve, reject) => {
          const job = (end: () => void) =>
            resolve(() => {
              end()
              return ended
            })
          const ended = own.schedule(() => new Promise<void>(job))
          ended.catch(reject)
        })
      },
    }),
    close: () => connection.disconnect(),
  }
}

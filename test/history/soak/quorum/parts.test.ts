/** Tests what the quorum soak excuses when a server loses its data. */
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../../kit/temp.ts'
import { lockName } from '../terms.ts'
import { inDoubt, lostBy } from './known.ts'
import { QuorumServer } from './server.ts'

test('a lock is in doubt unless a majority of servers that keep their data agrees on it before and after', () => {
  // There is one lock on five servers. The last server forgets its data.
  const sight = (...said: (string | undefined)[]) => said.map(one => [one])
  const doubt = (before: (string | undefined)[], after = before) =>
    inDoubt(sight(...before), sight(...after), 5).length > 0
  expect(doubt(['a', 'a', 'a', 'free'])).toBe(false)
  expect(doubt(['a', 'a', 'free', 'free'])).toBe(true)
  expect(doubt(['free', 'free', 'free', 'a'])).toBe(false)
  expect(doubt(['a', 'a', 'a', 'free'], ['a', 'a', 'b', 'free'])).toBe(true)
  expect(doubt(['a', 'a', 'a', 'a'], ['b', 'b', 'b', 'b'])).toBe(true)
  expect(doubt(['a', 'a', undefined, undefined])).toBe(true)
  // In the second case, the server that forgets its data had voted for a claim that the other servers do not know.
  const free = [['free'], ['free'], ['free'], ['free']]
  expect(inDoubt(free, free, 5, [['free']])).toEqual([])
  expect(inDoubt(free, free, 5, [['a']])).toEqual([0])
  // Servers that do not answer say nothing about any lock.
  expect(inDoubt([['a', 'b'], ['a', 'b'], ['a', 'x'], []], [['a', 'b'], ['a', 'b'], ['a', 'b'], []], 5)).toEqual([1])
})

async function opened(count: number): Promise<QuorumServer[]> {
  const folder = await emptyFolder()
  const servers: QuorumServer[] = []
  for (let i = 0; i < count; i++) {
    const server = await QuorumServer.open(i, folder)
    onTestFinished(() => server.close())
    servers.push(server)
  }
  return servers
}

test('only locks on which enough other servers agree survive the loss of a server; a stopped server says nothing', async () => {
  const servers = await opened(3)
  const hold = (key: string, id: string, ...on: number[]) => {
    const holder = `1 ${Date.now()}000 ${id} 0 30000 30000 0 label`
    return Promise.all(on.map(i => servers[i]!.admin.hset(lockName(key), 'holder', holder)))
  }
  await hold('everywhere', 'a', 0, 1, 2)
  await hold('twice', 'b', 0, 1)
  await hold('passed on', 'c', 0, 1, 2)
  const keys = ['everywhere', 'twice', 'passed on', 'free']
  const happen = async () => {
    await hold('passed on', 'd', 0, 1, 2)
  }
  const lost = (inDoubt: string[], voted: string[] = []) => ({ inDoubt, voted })
  expect(await lostBy(servers, [0], keys, happen, servers.length, 10_000)).toEqual(
    lost(['twice', 'passed on'], ['everywhere']),
  )
  expect(await lostBy(servers, [2], keys, async () => {}, servers.length, 10_000)).toEqual(
    lost([], ['everywhere', 'passed on']),
  )
  // By the clock of server 1, all leases on it have ended, although it still has the records of the holders.
  servers[1]!.clock.set(40_000)
  expect(await lostBy(servers, [0], keys, async () => {}, servers.length, 10_000)).toEqual(
    lost(['everywhere', 'twice', 'passed on']),
  )
  servers[1]!.clock.set(0)
  servers[1]!.stop()
  expect(await lostBy(servers, [0], keys, async () => {})).toEqual(lost(keys))
})

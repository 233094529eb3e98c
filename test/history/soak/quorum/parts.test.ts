/**
 * Tests the parts of the quorum soak on which its verdict depends: its plan, the data that a server loses or keeps, and
 * what such a loss excuses.
 */
import { expect, onTestFinished, test } from 'vitest'
import { Random } from '../../../kit/random.ts'
import { plainEnvironment } from '../../../kit/stepped-clock.ts'
import { emptyFolder } from '../../../kit/temp.ts'
import { groupBy } from '../../lists.ts'
import { CALM, lockName, STORM } from '../terms.ts'
import { inDoubt, lostBy } from './known.ts'
import { faultNames, nameOf, type Planned, QuorumPlanner } from './plan.ts'
import { QuorumServer } from './server.ts'
import { majorityOf } from './terms.ts'

const sizes = [3, 5, 7]
const planner = (seed: number, servers = 5) =>
  new QuorumPlanner(new Random(seed, 1), { processes: 4, keys: 12, servers, spare: (servers - 1) / 2 })

/** Returns the storms and calms of a run of one minute. */
function minute(one: QuorumPlanner): Planned[][] {
  return [one.storm(STORM), one.calm(CALM), one.storm(STORM), one.calm(CALM)]
}

test('the faults of a run follow from its seed', () => {
  expect(minute(planner(7))).toEqual(minute(planner(7)))
  expect(minute(planner(7))).not.toEqual(minute(planner(8)))
})

test.each(sizes)(
  'over %i servers every kind of fault comes within a minute, and again later; the faults are in the order of time',
  servers => {
    for (let seed = 0; seed < 200; seed++) {
      const plans = minute(planner(seed, servers))
      expect([...new Set(plans.flat().map(nameOf))].sort()).toEqual([...faultNames].sort())
      for (const plan of plans) expect(plan.map(({ at }) => at)).toEqual(plan.map(({ at }) => at).sort((a, b) => a - b))
    }
    const one = planner(1, servers)
    const later = Array.from({ length: 100 }, () => one.storm(STORM)).slice(2)
    expect([...new Set(later.flat().map(nameOf))].sort()).toEqual([...faultNames].sort())
  },
)

test.each(sizes)(
  'over %i servers a blow affects a minority, unless it names a majority; a calm has only blows against minorities',
  servers => {
    for (let seed = 0; seed < 50; seed++) {
      const one = planner(seed, servers)
      const storms = [one.storm(STORM), one.storm(STORM)].flat()
      const calms = [one.calm(CALM), one.calm(CALM), one.calm(CALM)].flat()
      for (const planned of calms) expect(planned).toMatchObject({ scope: 'server', majority: false })
      for (const planned of [...storms, ...calms]) {
        if (planned.scope !== 'server' && planned.scope !== 'lines') continue
        const met = planned.scope === 'server' ? planned.all : planned.servers
        expect(met.length >= majorityOf(servers)).toBe(planned.majority)
        expect(new Set(met).size).toBe(met.length)
      }
      // A blow is one or more server faults that begin together. Each of them lists all servers that the blow affects.
      const blows = groupBy(
        [...storms, ...calms].filter(planned => planned.scope === 'server'),
        ({ blow }) => blow,
      )
      for (const blow of blows.values()) {
        expect(new Set(blow.map(({ at }) => at)).size).toBe(1)
        expect(blow.map(({ server }) => server).sort()).toEqual([...blow[0]!.all].sort())
      }
    }
  },
)

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

test('a server keeps what it persists, forgets when it comes back empty, and has its own time of day', async () => {
  const [server, other] = (await opened(2)) as [QuorumServer, QuorumServer]
  const persists = async () => (await server.admin.info('persistence')).includes('aof_enabled:1')
  await server.admin.set('key', 'kept')
  await server.kill()
  await server.comeBack()
  expect(await server.admin.get('key')).toBe('kept')
  expect(await persists()).toBe(true)

  await server.kill()
  await server.comeBackEmpty('the truth')
  expect(await server.admin.get('key')).toBe(null)
  expect(await persists()).toBe(false)
  await server.admin.set('key', 'anew')
  await server.persist()
  expect(await persists()).toBe(true)
  await server.kill()
  await server.comeBack()
  expect(await server.admin.get('key')).toBe('anew')

  server.clock.set(50_000)
  const ahead = async ({ admin }: QuorumServer) => Number((await admin.time())[0]) * 1_000 - Date.now()
  expect(await ahead(server)).toBeGreaterThan(40_000)
  expect(await ahead(other)).toBeLessThan(10_000)
  expect(plainEnvironment()).toEqual(process.env)
})

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

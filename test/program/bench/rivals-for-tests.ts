/** Rivals that misbehave. The tests load this file, and so do the worker processes of the benchmark. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { Contender, Rival } from '../../../benchmarks/contract.ts'

function rival(name: string, acquire: Contender['acquire']): Rival {
  return {
    name,
    kind: 'rival',
    fair: false,
    package: undefined,
    note: '',
    runtime: 'node',
    missing: async () => undefined,
    async open() {
      return { contender: () => ({ acquire }), close: async () => {} }
    },
  }
}

const granted = async () => async () => {}

export const hanging = rival('hanging', () => new Promise(() => {}))
export const failing = rival('failing', () => Promise.reject(new Error('it does not work')))
/** A rival whose call blocks its process for ever. */
export const stuck = rival('stuck', () => {
  for (;;);
})
/** A rival whose lock excludes no other caller. */
export const noLock = rival('no-lock', async () => {
  await sleep(1)
  return () => sleep(1)
})
/** In each process, the first call waits for ever, and all others get the lock at once. */
let asked = 0
export const leaving = rival('leaving', async () => {
  if (asked++ === 0) await new Promise(() => {})
  await sleep(1)
  return () => sleep(1)
})
/**
 * A rival that sends a request to each server of a quorum, instead of acquiring a lock. `attempts` counts the requests,
 * and `secondRounds` the requests that were not answered in time.
 */
export const asking: Rival = {
  ...rival('asking', granted),
  locks: ['quorum'],
  async open({ servers = [] }) {
    const clients = servers.map(url => new Redis(url))
    await Promise.all(clients.map(client => client.ping()))
    let [questions, silent] = [0, 0]
    const answered = (client: Redis) => Promise.race([client.ping().then(() => true), sleep(200, false)])
    return {
      contender: () => ({
        async acquire() {
          const answers = await Promise.all(clients.map(answered))
          questions += answers.length
          silent += answers.filter(answer => !answer).length
          return async () => {}
        },
      }),
      tally: () => ({ attempts: questions, secondRounds: silent }),
      close: async () => {},
    }
  },
}
/**
 * A rival that fails if a server reports that it has been up for less than 3 s. The benchmark must wait until servers
 * have been up for 4 s. The reported time may be up to one second too short, because it is in whole seconds.
 */
export const choosy: Rival = {
  ...noLock,
  name: 'choosy',
  locks: ['quorum'],
  countsServersAfter: 4_000,
  async open(setting) {
    const clients = (setting.servers ?? []).map(url => new Redis(url))
    const infos = await Promise.all(clients.map(client => client.info('server')))
    for (const client of clients) client.disconnect()
    const seconds = infos.map(info => Number(/^uptime_in_seconds:(\d+)/m.exec(info)?.[1]))
    if (seconds.some(uptime => uptime < 3)) throw new Error(`too young: ${seconds.join()}`)
    return noLock.open!(setting)
  },
}
/** Each client of this rival reports the same numbers, so the sum of the numbers shows how many clients there are. */
export const counted: Rival = {
  ...rival('counted', granted),
  async open() {
    const acquire = async () => {
      await sleep(1)
      return () => sleep(1)
    }
    return { contender: () => ({ acquire }), tally: () => ({ attempts: 1, secondRounds: 2 }), close: async () => {} }
  },
}
export const absent: Rival = { ...rival('absent', granted), missing: async () => 'not installed' }

export default [hanging, failing, stuck, noLock, leaving, asking, choosy, counted, absent]

/**
 * Faults in which a single server keeps its data: the server is slow, refuses requests, or closes connections. The
 * faults that lose data are in data-faults.ts.
 */
import { mkdir } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../../kit/time.ts'
import { notSaving } from './data-faults.ts'
import { call, type Fault, type Faults } from './fault.ts'
import type { Server } from './server.ts'

export const serverFaults: Faults<Server> = {
  'client kill normal': { weight: 3, run: (_, server) => killClients(server, 'normal') },
  'client kill pubsub': { weight: 4, run: (_, server) => killClients(server, 'pubsub') },
  'client kill both': { weight: 2, run: (_, server) => killClients(server, 'pubsub', 'normal') },
  'script flush': { weight: 6, reach: 'nothing', run: (_, server) => call(server, 'SCRIPT', 'FLUSH') },
  pause: { weight: 3, longest: 1_500, run: pause('ALL') },
  'pause writes': { weight: 2, longest: 1_500, run: pause('WRITE') },
  sleep: {
    weight: 2,
    longest: 1_200,
    run: (_, server, { duration }) => call(server, 'DEBUG', 'SLEEP', String(duration / 1000)),
  },
  busy: {
    weight: 2,
    longest: 1_000,
    async run(_, server, { duration }) {
      const own = server.connect({ autoResendUnfulfilledCommands: false })
      // Without this option, the ready check of a new connection would fail for as long as the script runs.
      const ending = server.connect({ enableReadyCheck: false })
      const script = own.eval('while true do end', 0).catch(() => {})
      await sleep(duration)
      own.disconnect()
      await script
      // The end of the connection does not end the script, and the server may not even have begun to run it. So send
      // SCRIPT KILL again and again, until the server has answered three pings in a row.
      for (let idle = 0; idle < 3; await sleep(20)) {
        await ending.script('KILL').catch(() => {})
        const answer = await ending.ping().catch(String)
        idle = answer === 'PONG' ? idle + 1 : 0
      }
      ending.disconnect()
    },
  },
  'out of memory': {
    weight: 3,
    longest: 1_500,
    run: between(['CONFIG', 'SET', 'maxmemory', '1'], ['CONFIG', 'SET', 'maxmemory', '0']),
  },
  'no replicas': {
    weight: 2,
    longest: 1_000,
    run: between(['CONFIG', 'SET', 'min-replicas-to-write', '1'], ['CONFIG', 'SET', 'min-replicas-to-write', '0']),
  },
  // A replica without a master refuses writes and keeps its data.
  readonly: { weight: 2, longest: 1_000, run: between(['REPLICAOF', '127.0.0.1', '1'], ['REPLICAOF', 'NO', 'ONE']) },
  misconf: {
    weight: 2,
    longest: 1_000,
    async run(_, server, { duration }) {
      await notSaving(server)
      await server.forgetDisk()
      // This folder has the name of the file to which the server saves its data. So saving fails, and the server
      // refuses writes.
      await mkdir(server.dump)
      await call(server, 'CONFIG', 'SET', 'save', '3600 1', 'stop-writes-on-bgsave-error', 'yes')
      await call(server, 'BGSAVE')
      await eventually(async () => /rdb_last_bgsave_status:err/.test(await server.redis.info('persistence')))
      await sleep(duration)
      await call(server, 'CONFIG', 'SET', 'save', '', 'stop-writes-on-bgsave-error', 'no')
      await server.forgetDisk()
    },
  },
  'scripts revoked': { weight: 2, longest: 800, run: revoked(['-@scripting']) },
  'keys revoked': { weight: 1, longest: 800, run: revoked(['resetkeys', '~others:*']) },
  'login revoked': {
    weight: 1,
    longest: 800,
    run: revoked(['off'], server => call(server, 'CLIENT', 'KILL', 'USER', 'default')),
  },
  'publish revoked': { weight: 2, longest: 1_000, run: revoked(['-publish']) },
  'subscribe revoked': {
    weight: 2,
    longest: 800,
    run: revoked(['-subscribe'], server => killClients(server, 'pubsub')),
  },
}

/** Closes all connections of these types, except the one that asks for it. */
export function killClients(server: Server, ...types: string[]): Promise<unknown> {
  return Promise.all(types.map(type => call(server, 'CLIENT', 'KILL', 'TYPE', type)))
}

function pause(mode: 'ALL' | 'WRITE'): Fault<Server>['run'] {
  return async (_, server, { duration }) => {
    await call(server, 'CLIENT', 'PAUSE', String(duration), mode)
    await sleep(duration)
  }
}

type Command = [name: string, ...args: string[]]

function between(begin: Command, end: Command): Fault<Server>['run'] {
  return async (_, server, { duration }) => {
    await call(server, ...begin)
    await sleep(duration)
    await call(server, ...end)
  }
}

/**
 * Applies `rules` to the user `default`, as which all processes are logged in, and gives this user all rights again
 * when the fault ends. `noticed` runs after the rules have been applied. It closes the connections that would otherwise
 * keep a revoked right.
 */
function revoked(
  rules: string[],
  noticed: (server: Server) => Promise<unknown> = async () => {},
): Fault<Server>['run'] {
  return async (_, server, { duration }) => {
    await call(server, 'ACL', 'SETUSER', 'default', ...rules)
    await noticed(server)
    await sleep(duration)
    await call(server, 'ACL', 'SETUSER', 'default', 'on', 'allkeys', 'allchannels', '+@all')
  }
}

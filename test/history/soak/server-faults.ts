/**
 * Faults in which the server keeps its data: the server is slow, refuses requests, or closes connections. The faults
 * that lose data are in data-faults.ts.
 */
import { mkdir } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../../kit/time.ts'
import { clockFaults } from './clock-faults.ts'
import { dataFaults, notSaving } from './data-faults.ts'
import { call, type Fault } from './fault.ts'
import type { ServerFault } from './plan.ts'
import { quiet, type Stage } from './stage.ts'

export const serverFaults: Readonly<Record<ServerFault, Fault>> = {
  ...dataFaults,
  ...clockFaults,
  'client kill normal': { reach: 'server', run: stage => call(stage, 'CLIENT', 'KILL', 'TYPE', 'normal') },
  'client kill pubsub': { reach: 'server', run: stage => call(stage, 'CLIENT', 'KILL', 'TYPE', 'pubsub') },
  'client kill both': {
    reach: 'server',
    run: stage => Promise.all(['pubsub', 'normal'].map(type => call(stage, 'CLIENT', 'KILL', 'TYPE', type))),
  },
  'script flush': { reach: 'nothing', run: stage => call(stage, 'SCRIPT', 'FLUSH') },
  pause: pause('ALL'),
  'pause writes': pause('WRITE'),
  sleep: { reach: 'server', run: (stage, { duration }) => call(stage, 'DEBUG', 'SLEEP', String(duration / 1000)) },
  busy: {
    reach: 'server',
    async run(stage, { duration }) {
      const own = quiet(stage.second.duplicate({ autoResendUnfulfilledCommands: false }))
      // Without this option, the ready check of a new connection would fail for as long as the script runs.
      const ending = quiet(stage.second.duplicate({ enableReadyCheck: false }))
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
  'out of memory': between(['CONFIG', 'SET', 'maxmemory', '1'], ['CONFIG', 'SET', 'maxmemory', '0']),
  'no replicas': between(
    ['CONFIG', 'SET', 'min-replicas-to-write', '1'],
    ['CONFIG', 'SET', 'min-replicas-to-write', '0'],
  ),
  // A replica without a master refuses writes and keeps its data.
  readonly: between(['REPLICAOF', '127.0.0.1', '1'], ['REPLICAOF', 'NO', 'ONE']),
  misconf: {
    reach: 'server',
    async run(stage, { duration }) {
      await notSaving(stage)
      await stage.forgetDump()
      // This folder has the name of the file to which the server saves its data. So saving fails, and the server
      // refuses writes.
      await mkdir(stage.dump)
      await call(stage, 'CONFIG', 'SET', 'save', '3600 1', 'stop-writes-on-bgsave-error', 'yes')
      await call(stage, 'BGSAVE')
      await eventually(async () => /rdb_last_bgsave_status:err/.test(await stage.admin.info('persistence')))
      await sleep(duration)
      await call(stage, 'CONFIG', 'SET', 'save', '', 'stop-writes-on-bgsave-error', 'no')
      await stage.forgetDump()
    },
  },
  'scripts revoked': revoked(['-@scripting']),
  'keys revoked': revoked(['resetkeys', '~others:*']),
  'login revoked': revoked(['off'], stage => call(stage, 'CLIENT', 'KILL', 'USER', 'default')),
  'publish revoked': revoked(['-publish']),
  'subscribe revoked': revoked(['-subscribe'], stage => call(stage, 'CLIENT', 'KILL', 'TYPE', 'pubsub')),
}

function pause(mode: 'ALL' | 'WRITE'): Fault {
  return {
    reach: 'server',
    async run(stage, { duration }) {
      await call(stage, 'CLIENT', 'PAUSE', String(duration), mode)
      await sleep(duration)
    },
  }
}

function between([begin, ...beginning]: [string, ...string[]], [end, ...ending]: [string, ...string[]]): Fault {
  return {
    reach: 'server',
    async run(stage, { duration }) {
      await call(stage, begin, ...beginning)
      await sleep(duration)
      await call(stage, end, ...ending)
    },
  }
}

/**
 * Applies `rules` to the user `default`, as which all processes are logged in, and gives this user all rights again
 * when the fault ends. `noticed` runs after the rules have been applied. It closes the connections that would otherwise
 * keep a revoked right.
 */
function revoked(rules: string[], noticed: (stage: Stage) => Promise<unknown> = async () => {}): Fault {
  return {
    reach: 'server',
    async run(stage, { duration }) {
      await call(stage, 'ACL', 'SETUSER', 'default', ...rules)
      await noticed(stage)
      await sleep(duration)
      await call(stage, 'ACL', 'SETUSER', 'default', 'on', 'allkeys', 'allchannels', '+@all')
    },
  }
}

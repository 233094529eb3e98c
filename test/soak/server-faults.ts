/** Faults of the server and of single locks in it. Those that take holds away record when (`taken`). */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Reach } from '../history/events.ts'
import { now } from '../history/recorder.ts'
import type { KeyFault, ServerFault } from './plan.ts'
import type { Stage } from './stage.ts'
import { lockName } from './terms.ts'

interface Fault<Args extends unknown[]> {
  readonly reach: Reach
  readonly run: (stage: Stage, ...args: Args) => Promise<void>
}

export const serverFaults: Readonly<Record<ServerFault, Fault<[duration: number]>>> = {
  'client kill normal': { reach: 'server', run: stage => call(stage, 'CLIENT', 'KILL', 'TYPE', 'normal') },
  'client kill pubsub': { reach: 'server', run: stage => call(stage, 'CLIENT', 'KILL', 'TYPE', 'pubsub') },
  'script flush': { reach: 'nothing', run: stage => call(stage, 'SCRIPT', 'FLUSH') },
  pause: {
    reach: 'server',
    async run(stage, duration) {
      await call(stage, 'CLIENT', 'PAUSE', String(duration), 'ALL')
      await sleep(duration)
    },
  },
  sleep: { reach: 'server', run: (stage, duration) => call(stage, 'DEBUG', 'SLEEP', String(duration / 1000)) },
  busy: {
    reach: 'server',
    async run(stage, duration) {
      // Ends with the error that says it was killed.
      const script = stage.second.eval('while true do end', 0).catch(() => {})
      await sleep(duration)
      await call(stage, 'SCRIPT', 'KILL')
      await script
    },
  },
  'out of memory': setting('maxmemory', '1', '0'),
  'no replicas': setting('min-replicas-to-write', '1', '0'),
  readonly: {
    reach: 'server',
    async run(stage, duration) {
      // A replica of nobody refuses writes and keeps its data.
      await call(stage, 'REPLICAOF', '127.0.0.1', '1')
      await sleep(duration)
      await call(stage, 'REPLICAOF', 'NO', 'ONE')
    },
  },
  'rights revoked': {
    reach: 'server',
    async run(stage, duration) {
      await call(stage, 'ACL', 'SETUSER', 'default', '-@scripting')
      await sleep(duration)
      await call(stage, 'ACL', 'SETUSER', 'default', '+@all')
    },
  },
  flushall: { reach: 'server', run: stage => taking(stage, undefined, 'FLUSHALL', () => call(stage, 'FLUSHALL')) },
  'restart empty': {
    reach: 'server',
    run: (stage, duration) =>
      taking(stage, undefined, 'restart', async () => {
        await stage.server.kill()
        await sleep(duration)
        await stage.server.restart()
      }),
  },
}

export const keyFaults: Readonly<Record<KeyFault, Fault<[key: string, duration: number]>>> = {
  delete: { reach: 'nothing', run: (stage, key) => taking(stage, key, 'DEL', () => call(stage, 'DEL', lockName(key))) },
  'force release': {
    reach: 'nothing',
    run: (stage, key) =>
      taking(stage, key, 'forceRelease', async () => {
        await stage.locks.forceRelease(key)
      }),
  },
  'wrong type': {
    // While it lasts, no heartbeat of this lock's waiters is answered.
    reach: 'server',
    run: (stage, key, duration) =>
      taking(stage, key, 'wrong type', async () => {
        await call(stage, 'SET', lockName(key), 'a string')
        await sleep(duration)
        await call(stage, 'DEL', lockName(key))
      }),
  },
  'forge messages': { reach: 'nothing', run: forge },
}

/** Says everything that can be said without knowing a waiter's id, which is all that makes a grant. */
async function forge({ admin }: Stage, key: string): Promise<void> {
  const lock = lockName(key)
  const stranger = randomBytes(12).toString('base64url')
  for (const channel of [`unlock:${lock}`, `${lock}:unlock`]) await admin.publish(channel, 'free')
  const holder = await admin.hget(lock, 'hold')
  for (const inbox of (await admin.pubsub('CHANNELS', 'lock:inbox:*')) as string[]) {
    const client = inbox.slice('lock:inbox:'.length)
    await admin.publish(inbox, `handoff ${client}${stranger} 1 ${lock}`)
    await admin.publish(inbox, `expiry ${client}${stranger} 99999999999999999 ${lock}`)
    if (holder?.startsWith(client)) await admin.publish(inbox, `lost ${holder} 1 ${lock}`)
    await admin.publish(inbox, 'beat 0')
    await admin.publish(inbox, '')
  }
}

function setting(name: string, bad: string, good: string): Fault<[duration: number]> {
  return {
    reach: 'server',
    async run(stage, duration) {
      await call(stage, 'CONFIG', 'SET', name, bad)
      await sleep(duration)
      await call(stage, 'CONFIG', 'SET', name, good)
    },
  }
}

async function taking(
  { recorder }: Stage,
  key: string | undefined,
  how: string,
  take: () => Promise<void>,
): Promise<void> {
  const from = now()
  try {
    await take()
  } finally {
    recorder.record('taken', { ...(key !== undefined && { key }), from, how })
  }
}

async function call({ admin }: Stage, command: string, ...args: string[]): Promise<void> {
  await admin.call(command, ...args)
}

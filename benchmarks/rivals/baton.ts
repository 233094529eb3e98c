import { LockClient } from '../../src/index.ts'
import type { Rival, RivalClient, Setting } from '../contract.ts'

export const batonFair: Rival = {
  name: 'baton-fair',
  kind: 'baton',
  fair: true,
  package: undefined,
  note: 'redis-baton, fair: waiters stand in a queue in Redis, one LockClient a process.',
  runtime: 'node',
  missing: async () => undefined,
  open: setting => open(setting, true),
}

export const batonUnfair: Rival = {
  name: 'baton-unfair',
  kind: 'baton',
  fair: false,
  package: undefined,
  note: 'redis-baton, unfair for ever (fairAfter: Infinity): waiters are woken by messages, one LockClient a process.',
  runtime: 'node',
  missing: async () => undefined,
  open: setting => open(setting, false),
}

async function open({ url, lease, process }: Setting, fair: boolean): Promise<RivalClient> {
  // The lease is the client's, so that it is renewed like any other; a lease of the call would be a fixed one.
  // Unfair without an end: by the default, who waits for a second would stand in the queue from then on, and that is the other rival.
  const options = { fair, fairAfter: Number.POSITIVE_INFINITY, label: `bench-${process}` }
  const locks = new LockClient(url, { ...options, ...(lease === undefined ? {} : { lease }) })
  const contender = {
    async acquire(key: string) {
      const lease = await locks.lock(key)
      return () => lease.release()
    },
  }
  return { contender: () => contender, close: () => locks.close() }
}

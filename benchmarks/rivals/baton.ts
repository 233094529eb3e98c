import { type ClientOptions, LockClient, type LockOptions } from '../../src/index.ts'
import { asksFair, type Rival, type RivalClient, type Setting } from '../contract.ts'
import { allBut } from '../scenarios.ts'

export const batonFair: Rival = {
  name: 'baton-fair',
  kind: 'baton',
  fair: true,
  package: undefined,
  note: 'redis-baton, fair: waiters stand in a queue in Redis, one LockClient a process.',
  runtime: 'node',
  missing: async () => undefined,
  open: setting => open(setting, { fair: true }),
}

export const batonUnfair: Rival = {
  name: 'baton-unfair',
  kind: 'baton',
  fair: false,
  package: undefined,
  note: 'redis-baton, unfair for ever (fairAfter: Infinity): waiters are woken by messages, one LockClient a process.',
  runtime: 'node',
  missing: async () => undefined,
  // Without an end: by the default, who waits for a second would stand in the queue from then on, and that is the other rival.
  open: setting => open(setting, { fairAfter: Number.POSITIVE_INFINITY }),
}

export const batonMixed: Rival = {
  name: 'baton-mixed',
  kind: 'baton',
  fair: false,
  package: undefined,
  note: 'redis-baton, half of the callers fair, the others by default (unfair, fairAfter: 1,000), one LockClient a process.',
  runtime: 'node',
  skips: allBut(['mixed'], 'it is for callers of both kinds'),
  mixes: true,
  missing: async () => undefined,
  open: setting => open(setting, {}, index => ({ fair: asksFair(index) })),
}

async function open(
  { url, lease, process }: Setting,
  options: ClientOptions,
  callOptions?: (waiter: number) => LockOptions,
): Promise<RivalClient> {
  // The lease is the client's, so that it is renewed like any other; a lease of the call would be a fixed one.
  const ofClient = { ...options, label: `bench-${process}`, ...(lease === undefined ? {} : { lease }) }
  const locks = new LockClient(url, ofClient)
  const contender = (waiter: number) => {
    const ofCall = callOptions?.(waiter)
    return {
      async acquire(key: string) {
        const lease = await locks.lock(key, ofCall)
        return () => lease.release()
      },
    }
  }
  return { contender, close: () => locks.close() }
}

import { setTimeout as sleep } from 'node:timers/promises'
import { addressIn, elsewhere, tooMany } from './elsewhere.ts'
import { load } from './installed.ts'

const variable = 'BATON_ETCD'
const common = { package: 'etcd3', variable, example: 'http://127.0.0.1:2379', skips: tooMany }
const instead = 'etcd instead of Redis, so --rtt does not apply, by etcd3'

const library = () => load<typeof import('etcd3')>('etcd3')

/** Leases of etcd are whole seconds. */
const secondsOf = (lease = 30_000) => Math.ceil(lease / 1_000)

/** The lock of etcd3 makes a single attempt. */
export const etcd = elsewhere({
  ...common,
  name: 'etcd',
  fair: false,
  note: `${instead}: \`client.lock\`, which does not wait; called again after 10 ± 5 ms (our setting).`,
  async open({ lease }) {
    const { Etcd3, EtcdLockFailedError } = await library()
    const client = new Etcd3({ hosts: addressIn(variable) })
    return {
      contender: () => ({
        async acquire(key) {
          for (;;) {
            const lock = client.lock(key).ttl(secondsOf(lease))
            try {
              await lock.acquire()
              return () => lock.release()
            } catch (error) {
              if (!(error instanceof EtcdLockFailedError)) throw error
              await sleep(5 + Math.random() * 10)
            }
          }
        },
      }),
      close: async () => client.close(),
    }
  },
})

/** An election has a queue: each candidate watches the one before it. The leader holds the lock until it resigns. */
export const etcdElection = elsewhere({
  ...common,
  name: 'etcd-election',
  fair: true,
  note: `${instead}: an election as a lock, whose candidates wait in a queue, each for the one before it.`,
  async open({ lease }) {
    const { Etcd3 } = await library()
    const client = new Etcd3({ hosts: addressIn(variable) })
    return {
      contender: index => ({
        async acquire(key) {
          const campaign = client.election(key, secondsOf(lease)).campaign(String(index))
          await campaign.wait()
          return () => campaign.resign()
        },
      }),
      close: async () => client.close(),
    }
  },
})

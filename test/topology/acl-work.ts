/** Does everything that a client can do. If the client lacks any right that it needs, one of the steps fails. */
import type { Redis } from 'ioredis'
import { type LockClient, LockLostError } from '../../src/index.ts'
import { eventually, sleep } from '../kit/time.ts'

/**
 * Options for the client `limited` of `work`: the client sends heartbeats often, and its calls reject soon if Redis
 * refuses them.
 */
export const limitedOptions = { lease: 5_000, waiterTtl: 600, outageTimeout: 1_200 }
/**
 * Options for the client `other` of `work`. It sends heartbeats so rarely that they do not make up for a lost message
 * in time. So if a message is lost, a step of `work` fails.
 */
export const otherOptions = { lease: 30_000, waiterTtl: 60_000 }

/** A release must reach the waiter by a message within this time, in ms. A heartbeat would come later. */
const AT_ONCE = 1_000

type Step = readonly [name: string, run: () => Promise<unknown>]

/**
 * Runs all steps with `limited`, which may lack a right. `other` has all rights; it holds locks that `limited` wants,
 * and waits for locks that `limited` holds. Resolves to the names of the steps that failed, with their errors.
 */
export async function work(
  limited: LockClient,
  other: LockClient,
  admins: readonly Redis[],
  tag: string,
): Promise<string[]> {
  const key = (name: string) => `${name}-${tag}`
  const steps: Step[] = [
    [
      'to take, enter again, renew and release',
      async () => {
        const owner = { owner: tag }
        const first = await limited.lock(key('own'), owner)
        const second = await limited.lock(key('own'), owner)
        const third = await limited.lock(key('own'), owner)
        await first.renew()
        for (const lease of [first, third, second]) must(await lease.release())
      },
    ],
    [
      'to wait in the queue for longer than a heartbeat',
      async () => {
        const held = await other.lock(key('queue'))
        const waits = [1, 2].map(() => limited.lock(key('queue'), { fair: true }))
        await Promise.race([sleep(1_000), ...waits])
        must(await held.release())
        for (const wait of waits) must(await (await wait).release())
      },
    ],
    [
      'to give up',
      async () => {
        const held = await other.lock(key('leave'))
        must((await limited.tryLock(key('leave'), { fair: true, timeout: 150 })) === null)
        await eventually(async () => (await other.inspect(key('leave'))).waiters.length === 0, 400)
        must(await held.release())
      },
    ],
    [
      'to tell those who wait',
      async () => {
        for (const fair of [true, false]) {
          const name = key(`tell-${fair}`)
          const held = await limited.lock(name)
          const told = new Promise(resolve => other.once('waiting', resolve))
          const wait = other.lock(name, { fair, timeout: 4_000 })
          wait.catch(() => {})
          await told
          if (!fair) await sleep(50)
          const since = performance.now()
          must(await held.release())
          must(await (await wait).release())
          must(performance.now() - since < AT_ONCE)
        }
      },
    ],
    [
      'to stop listening',
      async () => {
        // In a cluster, a client may close a connection on which it is no longer subscribed to anything, instead of
        // unsubscribing. So the client stays subscribed to the lock `kept`, which has the same slot, and has to
        // unsubscribe from the lock `left`.
        const [kept, left] = [`{${key('listen')}}:kept`, `{${key('listen')}}:left`]
        const held = [await other.lock(kept), await other.lock(left)]
        const wait = limited.lock(kept)
        wait.catch(() => {})
        must((await limited.tryLock(left, { timeout: 100 })) === null)
        const listened = async (lock: string) => {
          const lists = admins.map(redis => redis.pubsub('CHANNELS', `*${lock}:unlock`))
          const sharded = admins.map(redis => redis.call('PUBSUB', 'SHARDCHANNELS', `*${lock}:unlock`))
          return (await Promise.all([...lists, ...sharded])).flat().length > 0
        }
        must(await listened(kept))
        await eventually(async () => !(await listened(left)), 2_500)
        for (const lease of held) must(await lease.release())
        must(await (await wait).release())
      },
    ],
    [
      'to look, and to take away',
      async () => {
        const name = key('look')
        const owner = { owner: `${tag} other` }
        const leases = [await other.lock(name, owner), await other.lock(name, owner)]
        must((await limited.inspect(name)).holds === 2)
        must(await limited.forceRelease(name))
        await eventually(() => leases.every(({ signal }) => signal.reason instanceof LockLostError), AT_ONCE)
      },
    ],
    [
      'to list',
      async () => {
        const held = [await other.lock(key('list')), await other.semaphore(key('list'), 1).lock()]
        const found: string[] = []
        for await (const { kind } of limited.list(key('list'))) found.push(kind)
        must(found.sort().join() === 'mutex,semaphore')
        for (const lease of held) must(await lease.release())
      },
    ],
  ]
  const failed: string[] = []
  const run = async ([name, step]: Step) => {
    await step().catch(error => failed.push(`${name}: ${error}`))
  }
  // The two lists of steps run side by side. Within a list, the steps run one after another, because a step that waits
  // for an event of the client `other` must not see an event that another step has caused.
  await Promise.all(
    [steps.slice(0, 3), steps.slice(3)].map(async some => {
      for (const step of some) await run(step)
    }),
  )
  return failed
}

function must(truth: boolean): void {
  if (!truth) throw new Error('it went wrong')
}

/**
 * The sale without Redis, in one process: the shop is a map, the locks are in the memory of the process, and each worker
 * is a client of its own. A worker cannot be killed or frozen as a process can. Instead, its client is disconnected, for
 * good or for a while, and the worker receives nothing meanwhile. For the lock, that is the same: a holder that no
 * longer answers, whose lease ends.
 */
import { LockClient } from '../../src/index.ts'
import { memory } from '../../src/memory/index.ts'
import { Counter } from './counter.ts'
import type { Listener, Worker } from './crew.ts'
import type { Ground } from './ground.ts'
import type { FromWorker, ToWorker } from './messages.ts'
import { sale } from './sale.ts'
import { type Books, openShop } from './shop.ts'

export function inMemory(): Ground {
  const store = memory()
  const shop = openShop(books(), 'sale')
  let workers = 0

  function hire(place: number, locked: boolean, listener: Listener): Worker {
    const label = `W${place + 1}`
    const pid = ++workers
    const locks = locked ? new LockClient(store, { label, waiterTtl: sale.waiterTtl }) : null
    let ends = () => {}
    /** Messages for a frozen worker. Undefined: it is not frozen. */
    let unread: ToWorker[] | undefined
    const say = (message: FromWorker) => {
      // As between processes, a message arrives later.
      setImmediate(() => {
        if (worker.state !== 'killed') listener.heard(worker, message)
      })
    }
    const counter = new Counter(pid, shop, locks, say)
    const end = async () => {
      await locks?.close()
      ends()
    }
    const worker: Worker = {
      place,
      label,
      pid,
      inHand: new Map(),
      state: 'starting',
      answered: 0,
      ended: new Promise(resolve => {
        ends = resolve
      }),
      send(message) {
        if (unread) unread.push(message)
        else if (message.kind === 'close') end()
        else
          counter.heard(message).catch(error => {
            if (worker.state === 'working' || worker.state === 'starting') listener.died(worker, error.stack)
          })
      },
      signal(name) {
        if (name === 'SIGCONT') {
          const waiting = unread ?? []
          unread = undefined
          if (locks) store.reconnect(locks)
          for (const message of waiting) worker.send(message)
          return
        }
        if (locks) store.disconnect(locks)
        if (name === 'SIGSTOP') unread = []
        // The coordinator notes the kill only after this call.
        else setImmediate(end)
      },
    }
    say({ kind: 'ready' })
    return worker
  }

  return {
    shop,
    client: () => new LockClient(store, { label: 'demo' }),
    hire,
    words: { killed: 'disconnecting ended', froze: 'disconnecting froze', worker: 'client' },
    wipe: async () => {},
    lost: () => false,
    stop: async () => {},
  }
}

/** A map with the commands of Redis that the shop uses. */
function books(): Books {
  const values = new Map<string, string>()
  const get = async (key: string) => values.get(key) ?? null
  const swap = (key: string, value: string | number) => {
    const previous = values.get(key) ?? null
    values.set(key, String(value))
    return previous
  }
  return {
    get,
    mget: keys => Promise.all(keys.map(get)),
    set: async (key, value) => swap(key, value),
    getset: async (key, value) => swap(key, value),
    async fencedSet(fence, key, token, value) {
      const seen = values.get(fence)
      if (seen !== undefined && token < Number(seen)) return [0, seen]
      values.set(fence, String(token))
      return [1, swap(key, value)]
    },
  }
}

import { addressIn, elsewhere, tooMany } from './elsewhere.ts'
import { load } from './installed.ts'

// The package node-zookeeper-client has no type declarations, so this file declares what it uses.
interface Library {
  readonly default: {
    createClient(address: string, options: { sessionTimeout?: number }): Client
    readonly CreateMode: { readonly EPHEMERAL_SEQUENTIAL: number }
  }
}
type Answer<T> = (error: Error | null, result: T) => void
interface Client {
  once(event: 'connected', heard: () => void): void
  connect(): void
  close(): void
  mkdirp(path: string, done: Answer<string>): void
  create(path: string, mode: number, done: Answer<string>): void
  remove(path: string, done: Answer<unknown>): void
  getChildren(path: string, done: Answer<string[]>): void
  exists(path: string, watch: () => void, done: Answer<unknown>): void
}

const variable = 'BATON_ZOOKEEPER'

function answered<T>(ask: (done: Answer<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => ask((error, result) => (error ? reject(error) : resolve(result))))
}

/**
 * The recipe for locks of ZooKeeper's documentation, since its clients for Node have none: each caller creates a node
 * with a number. The lowest number holds the lock, and each other caller watches the number before its own.
 */
async function lock(client: Client, folder: string, mode: number): Promise<string> {
  const own = await answered<string>(done => client.create(`${folder}/lock-`, mode, done))
  const name = own.slice(folder.length + 1)
  for (;;) {
    const queue = (await answered<string[]>(done => client.getChildren(folder, done))).sort()
    const before = queue[queue.indexOf(name) - 1]
    if (before === undefined) return own
    await new Promise<void>((gone, reject) => {
      client.exists(`${folder}/${before}`, gone, (error, found) => {
        if (error) reject(error)
        else if (!found) gone()
      })
    })
  }
}

export const zookeeper = elsewhere({
  name: 'zookeeper',
  fair: true,
  package: 'node-zookeeper-client',
  variable,
  example: '127.0.0.1:2181',
  note: 'ZooKeeper instead of Redis, so --rtt does not apply, by node-zookeeper-client: the recipe of its documentation, ephemeral sequential nodes, one session per process.',
  skips: tooMany,
  async open({ lease }) {
    const { default: library } = await load<Library>('node-zookeeper-client')
    const options = lease === undefined ? {} : { sessionTimeout: lease }
    const client = library.createClient(addressIn(variable), options)
    await new Promise<void>(connected => {
      client.once('connected', connected)
      client.connect()
    })
    const folders = new Map<string, Promise<unknown>>()
    return {
      contender: () => ({
        async acquire(key) {
          const folder = `/${key.replaceAll('/', '-')}`
          if (!folders.has(folder))
            folders.set(
              folder,
              answered<string>(done => client.mkdirp(folder, done)),
            )
          await folders.get(folder)
          const own = await lock(client, folder, library.CreateMode.EPHEMERAL_SEQUENTIAL)
          return () => answered(done => client.remove(own, done))
        },
      }),
      close: async () => client.close(),
    }
  },
})

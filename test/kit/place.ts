/**
 * A place is the set of servers on which a test of test/contract runs. These tests run in several topologies. The place
 * hides the differences between topologies, so each test is written once. All tests share the servers of one place, and
 * a test can also start a place of its own.
 */
import type { Cluster, Redis } from 'ioredis'
import { inject, onTestFinished } from 'vitest'
import type { ClientOptions } from '../../src/index.ts'
import { memory } from '../../src/memory/index.ts'
import { MEMORY, type MemoryStore, type StoreClient } from '../../src/memory/store.ts'
import { ADMIN, Admin } from './admin.ts'
import { FaultProxy } from './fault-proxy.ts'
import { topologyOf } from './topologies/index.ts'
import {
  asUser,
  instanceOf,
  partsOf,
  portsOf,
  type Source,
  sourceOf,
  storeNamed,
  through,
  toNobody,
} from './topologies/source.ts'
import type { InstanceOptions, Servers, Way, Ways } from './topologies/topology.ts'

/** Returns the servers that all tests share. */
export function place(): Place {
  const { dataPorts, ...ways } = inject('place')
  return new Place(ways, dataPorts)
}

/** Starts servers for this test alone, so that it can count calls or break servers. They are stopped after the test. */
export async function ownPlace(...args: string[]): Promise<OwnPlace> {
  const servers = await topologyOf(inject('topology')).start(args)
  onTestFinished(() => servers.stop())
  return new OwnPlace(servers)
}

export class Place {
  readonly #ways: Ways
  readonly #dataPorts: readonly number[]

  constructor(ways: Ways, dataPorts: readonly number[]) {
    this.#ways = ways
    this.#dataPorts = dataPorts
  }

  /** How a lock client in a child process reaches the servers. */
  get way(): Way {
    return this.#ways.client
  }

  get isCluster(): boolean {
    return this.#ways.client.kind === 'cluster'
  }

  /** Whether a client asks sentinels for the address of its server. */
  get bySentinels(): boolean {
    const { client } = this.#ways
    return client.kind === 'server' && client.options.sentinels !== undefined
  }

  /** Returns the source with which a lock client that has these options can reach the servers. */
  source(options: ClientOptions = {}): Source {
    const { client, otherPrefix = client } = this.#ways
    return sourceOf(options.prefix === undefined ? client : otherPrefix)
  }

  /** Number of servers to which a client sends each request: all servers of a quorum, otherwise one. */
  get parts(): number {
    const { client } = this.#ways
    return client.kind === 'memory' ? 1 : partsOf(client).length
  }

  /**
   * Makes the ioredis instances for a lock client: one instance, or for a quorum one per server. Closes them after the
   * test.
   */
  instances(options: InstanceOptions = {}): Instances {
    const { client, caller = client } = this.#ways
    const all = partsOf(caller).map(part => closed(instanceOf(part, options)))
    return { all, source: all.length === 1 ? all[0]! : all }
  }

  /** Returns a source that logs in as this user, or without credentials. */
  sourceAs(user?: { username?: string; password?: string }): Source {
    return sourceOf(asUser(this.#ways.client, user))
  }

  /** Returns a source for this topology with an address on which no server listens. */
  sourceToNobody(): Source {
    const { client } = this.#ways
    if (client.kind === 'memory') {
      const store = memory()
      store.disconnect()
      return store
    }
    return sourceOf(toNobody(this.#ways.client))
  }

  /**
   * Puts a proxy in front of each server that the client may connect to, and returns a source that uses the proxies.
   * The returned `proxy` controls all of them together.
   */
  async proxied(): Promise<{ source: Source; proxy: Pick<FaultProxies, keyof FaultProxies> }> {
    const { client } = this.#ways
    if (client.kind === 'memory') {
      const proxy = new MemoryOutage(client.store)
      return { source: proxy.source, proxy }
    }
    const proxies = await Promise.all(
      portsOf(this.#ways.client, this.#dataPorts).map(async port => {
        const proxy = await FaultProxy.open(`redis://127.0.0.1:${port}`)
        onTestFinished(() => proxy.close())
        return [port, proxy] as const
      }),
    )
    const ports = new Map(proxies.map(([port, proxy]) => [port, Number(new URL(proxy.url).port)]))
    const source = sourceOf(through(this.#ways.client, ports))
    return { source, proxy: new FaultProxies(proxies.map(([, proxy]) => proxy)) }
  }

  admin(): Admin {
    return new Admin(...partsOf(this.#ways.admin).map(part => closed(instanceOf(part, { connectionName: ADMIN }))))
  }
}

export interface Instances {
  readonly all: readonly (Redis | Cluster)[]
  /** The source for a lock client that uses all these servers. */
  readonly source: Source
}

export class OwnPlace extends Place {
  readonly #servers: Servers

  constructor(servers: Servers) {
    super(
      servers,
      servers.data.map(({ port }) => port),
    )
    this.#servers = servers
  }

  /** Crashes every server that holds data. */
  async kill(): Promise<void> {
    const { client } = this.#servers
    if (client.kind === 'memory') storeNamed(client.store).disconnect()
    await Promise.all(this.#servers.data.map(server => server.kill()))
  }

  /** Restarts the data servers without their data. Sentinels keep running. */
  async restart(): Promise<void> {
    await Promise.all(this.#servers.data.map(server => server.restart()))
  }
}

/** Controls several proxies as one. */
export class FaultProxies {
  readonly #proxies: readonly FaultProxy[]

  constructor(proxies: readonly FaultProxy[]) {
    this.#proxies = proxies
  }

  cut(): void {
    for (const proxy of this.#proxies) proxy.cut()
  }

  refuse(): void {
    for (const proxy of this.#proxies) proxy.refuse()
  }

  accept(): void {
    for (const proxy of this.#proxies) proxy.accept()
  }

  swallow(direction: 'up' | 'down'): void {
    for (const proxy of this.#proxies) proxy.swallow(direction)
  }

  hold(direction: 'up' | 'down'): void {
    for (const proxy of this.#proxies) proxy.hold(direction)
  }

  delay(ms: number): void {
    for (const proxy of this.#proxies) proxy.delay(ms)
  }

  heal(): void {
    for (const proxy of this.#proxies) proxy.heal()
  }
}

/** Cuts clients of a store in memory off from it, with the methods of the proxies. */
class MemoryOutage {
  readonly source: MemoryStore
  readonly #store: MemoryStore
  readonly #clients: StoreClient[] = []
  #away = false

  constructor(name: string) {
    const store = storeNamed(name)
    this.#store = store
    const { clock, join } = store[MEMORY]
    const joined: typeof join = (client, ...rest) => {
      const backend = join(client, ...rest)
      this.#clients.push(client)
      if (this.#away) store.disconnect(client)
      return backend
    }
    this.source = Object.create(store, { [MEMORY]: { value: { clock, join: joined } } })
  }

  cut(): void {
    for (const client of this.#clients) this.#store.disconnect(client)
    if (!this.#away) this.heal()
  }

  refuse(): void {
    this.#away = true
  }

  accept(): void {
    this.heal()
  }

  swallow(): void {
    this.hold()
  }

  hold(): void {
    this.#away = true
    this.cut()
  }

  delay(): void {
    throw new Error('the answers of a store in memory take no time')
  }

  heal(): void {
    this.#away = false
    for (const client of this.#clients) this.#store.reconnect(client)
  }
}

function closed<T extends Redis | Cluster>(redis: T): T {
  onTestFinished(() => {
    redis.disconnect()
  })
  return redis
}

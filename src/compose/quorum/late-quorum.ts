/**
 * Loads the code of a quorum when a client is made for several servers, so that a program with one server does not
 * carry it. The arguments are checked before, and the names of locks follow from them. Until the code is loaded, the
 * client is as it is while its first connections are being made: calls wait.
 */
import type { Backend, Made } from '../../backend.ts'
import type { Clock } from '../../clock.ts'
import { LockArgumentError } from '../../errors.ts'
import type {
  Channel,
  Channels,
  Claim,
  Granted,
  HeartbeatEntry,
  HoldName,
  Inspection,
  Kind,
  KindDefinition,
  KindTraits,
  Refused,
  Released,
  RenewalRequest,
} from '../../kind.ts'
import type { LockState } from '../../kinds/state.ts'
import type { Outcome } from '../../outcome.ts'
import { addressOf } from '../../redis/address.ts'
import { clientsOf, type RedisSource } from '../../redis/clients.ts'
import { type Ids, randomIds } from '../../redis/ids.ts'
import { Keys, Namespace } from '../../redis/keys.ts'
import type { LinkListener } from '../../redis/link.ts'
import type { Settings } from '../../settings.ts'
import type { Quorum } from './backend.ts'

/** What is loaded: a promise of it, and the thing itself once it is there. */
class Late<T> {
  readonly promise: Promise<T>
  value: T | undefined

  constructor(promise: Promise<T>) {
    this.promise = promise.then(value => {
      this.value = value
      return value
    })
    this.promise.catch(() => {})
  }

  call<R>(method: (value: T) => Promise<R>): Promise<R> {
    return this.value ? method(this.value) : this.promise.then(method)
  }

  tell<R>(to: Outcome<R>, method: (value: T) => void): void {
    if (this.value) method(this.value)
    else this.promise.then(method, error => to.failed(error))
  }
}

export class LateQuorum implements Backend {
  readonly ids: Ids = randomIds()
  readonly inboxPerLock: boolean
  readonly #names: Namespace
  readonly #quorum: Late<Quorum>
  readonly #listener: LinkListener
  readonly #longestLease: number
  #closed = false

  constructor(sources: readonly RedisSource[], settings: Settings, clock: Clock, listener: LinkListener) {
    const clients = sources.map(clientsOf)
    const addresses = clients.map(({ make }) => addressOf(make(0)))
    const twice = addresses.find((address, i) => addresses.indexOf(address) !== i)
    if (twice !== undefined)
      throw new LockArgumentError('redis', `an array with ${twice} twice`, 'servers at different addresses')
    this.inboxPerLock = clients.some(({ cluster }) => cluster)
    const [{ keyPrefix, cluster }] = clients as [(typeof clients)[0]]
    this.#names = new Namespace(`${keyPrefix}${settings.prefix}:`, cluster)
    this.#listener = listener
    this.#longestLease = settings.lease
    const { ids } = this
    const load = import('./backend.ts')
    this.#quorum = new Late(load.then(({ Quorum }) => new Quorum(sources, settings, clock, listener, ids)))
  }

  get up(): boolean {
    return this.#quorum.value?.up ?? false
  }

  get reachable(): boolean {
    return this.#quorum.value?.reachable ?? false
  }

  get answeredAt(): number {
    return this.#quorum.value?.answeredAt ?? Number.NEGATIVE_INFINITY
  }

  trouble(): Error | undefined {
    return this.#quorum.value?.trouble()
  }

  open(): void {
    this.#quorum.promise.then(
      quorum => this.#closed || quorum.open(),
      error => this.#listener.down(error, false),
    )
  }

  close(): void {
    this.#closed = true
    this.#quorum.promise.then(
      quorum => quorum.close(),
      () => {},
    )
  }

  async rest(): Promise<void> {
    await this.#quorum.value?.rest()
  }

  together(): void {
    this.#quorum.value?.together()
  }

  make<State, S>(kind: KindDefinition<State, S>, warn: Parameters<Backend['make']>[1]): Made<State> {
    if (kind.name !== '')
      throw new LockArgumentError('kind', kind.name, 'a mutex, the only kind of lock that a quorum has so far')
    const made = this.#quorum.call(async quorum => quorum.make(kind, warn).kind as unknown as Kind<LockState>)
    return {
      keys: new Keys(this.#names, kind),
      kind: new LateKind(new Late(made), this.#longestLease) as unknown as Kind<State>,
    }
  }

  channels(keys: Keys): Channels {
    const late = new Late(this.#quorum.call(async quorum => quorum.channels(keys)))
    const wanted = new Set<string>()
    return {
      isSubscribed: (key, channel) => late.value?.isSubscribed(key, channel) ?? false,
      subscribe: (key, channel) => {
        if (late.value) return late.value.subscribe(key, channel)
        wanted.add(`${channel} ${key}`)
        return late.call(async channels =>
          wanted.has(`${channel} ${key}`) ? channels.subscribe(key, channel) : undefined,
        )
      },
      unsubscribe: (key: string, channel: Channel) => {
        if (late.value) late.value.unsubscribe(key, channel)
        else wanted.delete(`${channel} ${key}`)
      },
    }
  }

  async *list(kinds: readonly Keys[], pattern: string): AsyncGenerator<[kind: number, key: string][], void, undefined> {
    yield* (await this.#quorum.promise).list(kinds, pattern)
  }
}

/** The mutex of a quorum. Each call waits until the code is loaded. */
class LateKind implements Kind<LockState> {
  readonly traits: KindTraits<LockState>
  readonly inspection: Inspection<LockState>
  readonly #kind: Late<Kind<LockState>>

  constructor(kind: Late<Kind<LockState>>, longestLease: number) {
    this.#kind = kind
    const lacks = ['maxWaiters', 'rejectLate'] as const
    this.traits = { shared: false, reentrant: true, queues: true, lacks, longestLease }
    this.inspection = {
      inspect: key => kind.call(({ inspection }) => inspection.inspect(key)),
      isLocked: key => kind.call(({ inspection }) => inspection.isLocked(key)),
      find: key => kind.call(({ inspection }) => inspection.find(key)),
      forceRelease: (key, only) => kind.call(({ inspection }) => inspection.forceRelease(key, only)),
    }
  }

  attempt(claim: Claim, mode: 'try' | 'queue', reserve: number, waits: boolean, to: Outcome<Granted | Refused>) {
    this.#kind.tell(to, kind => kind.attempt(claim, mode, reserve, waits, to))
  }

  tend(key: string, waiters: readonly HeartbeatEntry[]) {
    return this.#kind.call(kind => kind.tend(key, waiters))
  }

  leave(claim: Claim) {
    return this.#kind.call(kind => kind.leave(claim))
  }

  giveBack(hold: HoldName) {
    return this.#kind.call(kind => kind.giveBack(hold))
  }

  release(hold: HoldName, used: number | undefined, to: Outcome<Released>) {
    this.#kind.tell(to, kind => kind.release(hold, used, to))
  }

  renew(asked: readonly RenewalRequest[]) {
    return this.#kind.call(kind => kind.renew(asked))
  }

  raised(first: HoldName, longer: HoldName): number {
    return this.#kind.value?.raised?.(first, longer) ?? 0
  }

  placeOf(key: string): string {
    return this.#kind.value?.placeOf(key) ?? ''
  }
}

/**
 * One Redis, which may be a cluster or have sentinels. `Server` has the link to Redis, and the checks after connecting.
 */
import type { Backend, Made } from '../backend.ts'
import type { Clock } from '../clock.ts'
import type { LockError } from '../errors.ts'
import type { KindDefinition, Names, ScriptSet } from '../kind.ts'
import type { Settings } from '../settings.ts'
import type { RedisSource } from './clients.ts'
import type { Ids } from './ids.ts'
import { Keys } from './keys.ts'
import { Link, type LinkListener } from './link.ts'
import type { Calling } from './rights.ts'
import { Survey } from './survey.ts'

export class Server implements Backend {
  readonly link: Link
  readonly #settings: Settings
  readonly #survey: Survey

  constructor(link: Link, settings: Settings, warn: (error: LockError) => void) {
    this.link = link
    this.#settings = settings
    this.#survey = new Survey(link.commands.redis, link.names, link.ids.client, settings, warn)
  }

  /** Makes a `Server` from `source`. `ids` makes the ids of the client; by default, they are random. */
  static at(source: RedisSource, settings: Settings, clock: Clock, listener: LinkListener, ids?: Ids): Server {
    return new Server(new Link(source, settings, clock, listener, ids), settings, error => listener.warned?.(error))
  }

  get ids(): Ids {
    return this.link.ids
  }

  get inboxPerLock(): boolean {
    return this.link.inboxPerLock
  }

  get up(): boolean {
    return this.link.commands.up
  }

  get reachable(): boolean {
    return this.up
  }

  get answeredAt(): number {
    return this.link.commands.answeredAt
  }

  trouble(): Error | undefined {
    return this.link.commands.trouble
  }

  open(): void {
    this.link.open()
  }

  close(): void {
    this.link.close()
  }

  async rest(): Promise<void> {}

  together(): void {
    this.link.commands.together()
  }

  make<State, S extends ScriptSet, N extends Names>(
    kind: KindDefinition<State, S, N>,
    warn: (error: LockError) => void,
  ): Made<State> {
    const keys = new Keys(this.link.names, kind)
    return { keys, kind: kind.make({ ...this.#settings, ...this.link.parts(keys, kind.scripts), warn }) }
  }

  channels(keys: Keys) {
    return this.link.channels(keys)
  }

  list(kinds: readonly Keys[], pattern: string) {
    return this.link.list(kinds, pattern)
  }

  need(kinds: readonly Calling[]): void {
    this.#survey.need(kinds)
  }

  look(): void {
    this.#survey.look()
  }
}

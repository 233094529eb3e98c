/** One Redis, which may be a cluster or have sentinels: the link to it, the kinds of lock, and the checks of servers. */
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
import { type Executor, Scripts } from './scripts.ts'
import { Survey } from './survey.ts'

export class Server extends Link implements Backend {
  readonly #settings: Settings
  readonly #survey: Survey

  /** `ids` makes the ids of the client; by default, they are random. */
  constructor(source: RedisSource, settings: Settings, clock: Clock, listener: LinkListener, ids?: Ids) {
    super(source, settings, clock, listener, ids)
    this.#settings = settings
    this.#survey = new Survey(this, settings, error => listener.warned?.(error))
  }

  get up(): boolean {
    return this.commands.up
  }

  get reachable(): boolean {
    return this.up
  }

  get answeredAt(): number {
    return this.commands.answeredAt
  }

  trouble(): Error | undefined {
    return this.commands.trouble
  }

  async rest(): Promise<void> {}

  together(): void {
    this.commands.together()
  }

  make<State, S extends ScriptSet, N extends Names>(
    kind: KindDefinition<State, S, N>,
    warn: (error: LockError) => void,
  ): Made<State> {
    const keys = new Keys(this.names, kind)
    const { cluster, inboxes, pattern } = this.names
    const settings = { cluster, inboxes, tokenMemory: this.#settings.tokenMemory }
    const through = (executor: Executor) => new Scripts(executor, kind.scripts, settings, pattern)
    const parts = {
      names: keys,
      scripts: through(this.commands),
      replicated: this.replication && through(this.replication),
      newId: this.ids.next,
    }
    return { keys, kind: kind.make({ ...this.#settings, ...parts, warn }) }
  }

  need(kinds: readonly Calling[]): void {
    this.#survey.need(kinds)
  }

  look(): void {
    this.#survey.look()
  }
}

/** One Redis, which may be a cluster or have sentinels: the link to it, and the kinds of lock. */
import type { Backend, Made } from '../backend.ts'
import type { Clock } from '../clock.ts'
import type { LockError } from '../errors.ts'
import type { KindDefinition, Names, ScriptSet } from '../kind.ts'
import type { Settings } from '../settings.ts'
import type { RedisSource } from './clients.ts'
import type { Ids } from './ids.ts'
import { Keys } from './keys.ts'
import { Link, type LinkListener } from './link.ts'
import { type Executor, Scripts } from './scripts.ts'

export class Server extends Link implements Backend {
  readonly #settings: Settings

  /** `ids` makes the ids of the client; by default, they are random. */
  constructor(source: RedisSource, settings: Settings, clock: Clock, listener: LinkListener, ids?: Ids) {
    super(source, settings, clock, listener, ids)
    this.#settings = settings
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
}

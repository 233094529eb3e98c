/**
 * Presents the connections to N independent servers as one Redis, which is up while a majority of the servers is up.
 * The servers' messages go to the ballots (ballots.ts), and the client receives what a majority says.
 *
 *      Session ──▶ Quorum ─┬─▶ Server ──▶ Redis 1       QuorumKind ─┬─▶ Mutex of server 1
 *                          ├─▶ Server ──▶ Redis 2                   ├─▶ Mutex of server 2
 *                          └─▶ Server ──▶ Redis 3                   └─▶ Mutex of server 3
 */
import type { Backend, BackendListener, Made } from '../../backend.ts'
import type { Clock, Timer } from '../../clock.ts'
import { LockArgumentError, LockError } from '../../errors.ts'
import type { Channel, Channels, KindDefinition, Names, ScriptSet } from '../../kind.ts'
import type { LockState } from '../../kinds/state.ts'
import type { Settings } from '../../options.ts'
import type { RedisSource } from '../../redis/clients.ts'
import { type Ids, randomIds } from '../../redis/ids.ts'
import type { Keys } from '../../redis/keys.ts'
import type { LinkListener } from '../../redis/link.ts'
import type { Calling } from '../../redis/rights.ts'
import { Server } from '../../redis/server.ts'
import { Ballots } from './ballots.ts'
import { Floor } from './floor.ts'
import { Member, noMajority, Openings, type Place, Standing } from './member.ts'
import { QuorumKind } from './quorum-kind.ts'
import { Round } from './round.ts'

export class Quorum implements Backend {
  readonly ids: Ids
  readonly #members: readonly Member[]
  readonly #majority: number
  readonly #clock: Clock
  readonly #settings: Settings
  readonly #listener: BackendListener
  readonly #floor: Floor
  readonly #openings: Openings
  /**
   * The ballots of the first `Kind` that `make` returned. The client takes locks only with this `Kind`. A `Kind` that
   * is made later only inspects locks.
   */
  #ballots: Ballots | undefined
  /** The longest lease that this client has asked for, in ms. */
  #longest: number
  /** Whether a majority of the servers was up at the latest call of `#changed`. */
  #whole: boolean | undefined
  #reported = false
  /** For each server whose votes do not count yet, the timer of `#waitFor`. */
  readonly #waits = new Map<Standing, Timer>()

  constructor(
    sources: readonly RedisSource[],
    settings: Settings,
    clock: Clock,
    listener: BackendListener,
    ids = randomIds(),
  ) {
    const now = () => clock.now()
    this.ids = ids
    this.#clock = clock
    this.#settings = settings
    this.#listener = listener
    this.#majority = Math.floor(sources.length / 2) + 1
    this.#floor = new Floor(now, sources.length, () => this.#readClocks())
    this.#openings = new Openings(now, this.#majority)
    this.#longest = settings.lease
    this.#members = sources.map((source, i) => {
      const server = Server.at(source, settings, clock, this.#listenTo(i), this.ids)
      return new Member(i, server, new Standing(clock, () => this.#longest))
    })
    const addresses = this.#members.flatMap(({ address }) => address ?? [])
    const twice = addresses.find((address, i) => addresses.indexOf(address) !== i)
    if (twice !== undefined)
      throw new LockArgumentError('redis', `an array with ${twice} twice`, 'servers at different addresses')
  }

  get inboxPerLock(): boolean {
    return this.#members.some(({ server }) => server.inboxPerLock)
  }

  get up(): boolean {
    return this.#members.filter(({ mayCount }) => mayCount).length >= this.#majority
  }

  get answers(): number {
    return this.#members.reduce((sum, { server }) => sum + server.answers, 0)
  }

  get trouble(): Error | undefined {
    const problems = this.#members.map(({ problem }) => problem)
    const well = problems.filter(problem => problem === undefined).length
    return well < this.#majority ? noMajority(problems) : undefined
  }

  open(): void {
    for (const { server } of this.#members) server.open()
  }

  close(): void {
    for (const timer of this.#waits.values()) timer.cancel()
    for (const { server } of this.#members) server.close()
  }

  async rest(): Promise<void> {
    await this.#ballots?.clearing.rest()
  }

  together(): void {
    for (const { server } of this.#members) server.together()
  }

  make<State, S extends ScriptSet, N extends Names>(
    kind: KindDefinition<State, S, N>,
    warn: (error: LockError) => void,
  ): Made<State> {
    const places = this.#members.map((member): Place => {
      const made = member.server.make(kind, warn) as unknown as Made<LockState>
      const { voting } = made.kind
      if (!voting)
        throw new LockArgumentError('kind', kind.name, 'a mutex, the only kind of lock that a quorum has so far')
      return { member, voting, kind: made.kind, keys: made.keys }
    })
    const { keys } = places[0]!
    const { waiterTtl, outageTimeout } = this.#settings
    const ballots = new Ballots(places, this.#clock, this.#floor, waiterTtl, {
      won: ({ id, key }, grant) => this.#listener.won(id, grant, keys.of(key).lock),
      asks: lease => {
        this.#longest = Math.max(this.#longest, lease)
      },
    })
    const made = new QuorumKind(ballots, this.#floor, this.#clock, outageTimeout)
    this.#ballots ??= ballots
    return { keys, kind: made as unknown as Made<State>['kind'] }
  }

  channels(keys: Keys): Channels {
    const each = this.#members.map(({ server }, i) => server.channels(this.#keysOf(i) ?? keys))
    const hears = (key: string, channel: Channel) =>
      each.filter(channels => channels.hears(key, channel)).length >= this.#majority
    return {
      hears,
      hear: (key, channel) => {
        const hearing = each.map(channels => channels.hear(key, channel) ?? Promise.resolve())
        return hears(key, channel) ? undefined : this.#heard(hearing)
      },
      drop: (key, channel) => {
        for (const channels of each) channels.drop(key, channel)
      },
    }
  }

  async *list(kinds: readonly Keys[], pattern: string): AsyncGenerator<[kind: number, key: string][], void, undefined> {
    const round = new Round(this.#members, this.#majority, this.#clock)
    const lists = this.#members.map(({ server }, i) => {
      const pages = server.list(
        kinds.map(keys => this.#keysOf(i) ?? keys),
        pattern,
      )
      const first = pages.next()
      round.expect(i, first, () => false)
      return { pages, first }
    })
    const errors = [...(await round.over)]
    const seen = new Set<string>()
    for (const [i, { pages, first }] of lists.entries()) {
      // Skips a server that has not sent the first page of its list in time.
      if (!round.has(i)) continue
      try {
        for (let page = await first; !page.done; page = await pages.next()) {
          const found = page.value.filter(([kind, key]) => !seen.has(`${kind} ${key}`))
          for (const [kind, key] of found) seen.add(`${kind} ${key}`)
          yield found
        }
      } catch (error) {
        errors[i] = error as Error
      }
    }
    if (errors.filter(Boolean).length > this.#members.length - this.#majority) throw noMajority(errors)
  }

  need(kinds: readonly Calling[]): void {
    for (const { server } of this.#members) server.need(kinds)
  }

  /** Resolves when a majority of the servers has confirmed the subscription. */
  async #heard(hearing: readonly Promise<void>[]): Promise<void> {
    const round = new Round(this.#members, this.#majority, this.#clock)
    for (const [i, each] of hearing.entries()) round.expect(i, each, () => true)
    await round.over
  }

  /** A quorum checks each server when it is connected, so there is nothing to check here. */
  look(): void {}

  #readClocks(): void {
    for (const { index, up, server } of this.#members) {
      if (!up) continue
      const sent = this.#clock.now()
      const read = server.link.commands.redis.time() as Promise<[seconds: number | string, micros: number | string]>
      read.then(
        ([seconds, micros]) => {
          this.#floor.reading(index, Number(seconds) * 1e6 + Number(micros), sent)
          this.#ballots?.reconsider()
        },
        // A failed reading is ignored. While no clock has been read, a grant takes a second round trip (floor.ts).
        () => {},
      )
    }
  }

  #keysOf(server: number): Keys | undefined {
    return this.#ballots?.places[server]?.keys
  }

  /**
   * Translates `lock`, the name of a lock on the server with the number `server`. Returns the name of the same lock on
   * the first server, because session.ts uses only the names on the first server. Returns undefined if `lock` is not
   * the name of a lock of this kind.
   */
  #nameOf(server: number, lock: string): string | undefined {
    const key = this.#keysOf(server)?.keyOf(lock)
    return key === undefined ? undefined : this.#keysOf(0)?.of(key).lock
  }

  #listenTo(i: number): LinkListener {
    const listener = this.#listener
    const member = () => this.#members[i] as Member
    const said = (what: string, lock: string, tell: (lock: string, by: string | undefined) => void, by?: string) => {
      const name = this.#nameOf(i, lock)
      const opening = name === undefined ? undefined : this.#openings.said(`${what} ${name}`, i, by)
      if (name !== undefined && opening) tell(name, opening.by)
    }
    return {
      granted: (id, token, via, lock) => {
        const { places } = this.#ballots as Ballots
        if (this.#ballots?.announced(i, id, token, via)) return
        const key = places[i]?.keys.keyOf(lock)
        if (key !== undefined) places[i]?.kind.giveBack({ key, id }).catch(() => {})
      },
      lost: (id, token) => {
        this.#ballots?.taken(i, id, token)
        listener.lost(id, 0)
      },
      unlocked: (lock, by) => said('free', lock, (name, one) => listener.unlocked(name, one), by),
      ends: (lock, ms) => {
        const name = this.#nameOf(i, lock)
        if (name !== undefined) listener.ends?.(name, ms)
      },
      entered: (lock, owner) => said(`entered ${owner}`, lock, name => listener.entered(name, owner)),
      down: (error, brief) => {
        member().lost(error, brief)
        this.#changed()
      },
      up: () => {
        const { server, standing } = member()
        server.look()
        this.#changed()
        this.#readClocks()
        standing.look(server.link.commands).then(() => {
          this.#changed()
          this.#waitFor(standing)
        })
      },
      heard: lock => {
        if (lock === undefined) return listener.heard()
        const name = this.#nameOf(i, lock)
        if (name !== undefined) listener.heard(name)
      },
      disconnected: () => this.#report(),
      reconnected: () => this.#report(),
      warned: error =>
        listener.warned?.(
          new LockError(error.code, `server ${i + 1} of ${this.#members.length}: ${error.message}`, undefined, error),
        ),
      busy: () => listener.busy(),
    }
  }

  /** Calls `#changed` when the votes of this server begin to count, and at least once a second until then. */
  #waitFor(standing: Standing): void {
    const { wait } = standing
    if (standing.counts !== false || wait === Number.POSITIVE_INFINITY) return
    this.#waits.get(standing)?.cancel()
    const timer = this.#clock.after(Math.min(wait + 1, 1_000), () => {
      this.#waits.delete(standing)
      this.#changed()
      this.#waitFor(standing)
    })
    this.#waits.set(standing, timer)
  }

  /**
   * Whether fewer than a majority of the servers are usable. A server is unusable if the connection to it was lost or
   * could not be made, or if its votes do not count. While the first connection to a server is being made, the server
   * counts as usable.
   */
  get #lacking(): boolean {
    const useless = this.#members.filter(({ away, standing }) => away || standing.counts === false)
    return useless.length > this.#members.length - this.#majority
  }

  /** Called after a server was connected or lost, and when its votes begin to count. */
  #changed(): void {
    const whole = this.up
    if (whole !== this.#whole || !whole) {
      this.#whole = whole
      const error = whole ? undefined : this.trouble
      if (whole) this.#listener.up()
      else if (error && this.#lacking) this.#listener.down(error, false)
    }
    this.#report()
    this.#ballots?.reconsider()
  }

  /** Emits `disconnected` when a majority is no longer available, and `reconnected` when one is available again. */
  #report(): void {
    const { trouble, up } = this
    if (!up && trouble && this.#lacking && this.#members.some(({ away }) => away) && !this.#reported) {
      this.#reported = true
      this.#listener.disconnected(trouble)
    } else if (up && this.#reported) {
      this.#reported = false
      this.#listener.reconnected()
    }
  }
}

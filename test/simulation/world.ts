/**
 * One history: a few clients, a server and the network between them, all from one seed.
 *
 *      plan ──▶ calls ──▶ SimulatedClient ──▶ SimulatedRedis ══ pipes ══▶ Server ──▶ scripts
 *           └─▶ faults        │   ▲                                          │
 *                             │   └────────────── messages ◀─────────────────┤
 *                             ▼                                              ▼
 *                       Checks, Promises: what clients believe, compared with what the scripts decided
 *
 * The client code of redis-baton is real, from the session down to its calls of ioredis. The scripts of lua/ are real,
 * too. The socket, Redis's commands and time are simulated. Every choice (delays, losses, lateness of timers, the order
 * after a freeze) is drawn from the seed. So a seed determines a history, and two runs have exactly the same trace.
 *
 * Time is a queue of events. An event of a client runs in that client's code. All promises that follow from this event
 * are settled before the next event. To settle them takes a turn of the real event loop (run.ts). An event of the
 * server needs no such turn: it runs to its end at once, and its effects are new events. Every arrival and every timer
 * is an event, so events interleave as finely as in reality.
 *
 * A history has four parts:
 *   1. calls and faults                              until plan.healed
 *   2. no new calls or faults; waiters are served    until every promise has settled and every lease has ended (I4, I6);
 *                                                    then each client takes each lock once more
 *   3. all clients are idle                          until old timers have run; then no client keeps anything (I7)
 *   4. all clients close, and keys expire            then no timers and no keys are left (I7)
 */
import type { Lease } from '../../src/key/lease.ts'
import { Random } from '../kit/random.ts'
import { Beliefs } from './beliefs.ts'
import { Checks } from './checks.ts'
import { SimulatedClient } from './client.ts'
import { heal, kill, type Stage, strike } from './faults.ts'
import type { Net } from './network.ts'
import { type Call, type Nested, type Plan, planOf, type SimulatedKind } from './plan.ts'
import { Promises } from './promises.ts'
import { Server } from './server.ts'
import { Process, Timeline } from './timeline.ts'
import { Trace } from './trace.ts'

/** The time in ms between two checks whether part 2 of the history is over. */
const POLL = 25
/**
 * The length of part 3, in ms. No lease lasts so long, no unused channel stays subscribed for so long, and no client
 * pauses its cleanup for so long.
 */
const REST = 4_000
/** How many ms `close` may take after the client's last request. In this time, the cleanup may pause for 1,000 ms. */
const CLEANING = 1_200
/** How many ms the first attempt of a call has for its answer, even if the call's timeout is shorter. */
const ATTEMPT = 1_000
/** A renewal by some ms prolongs the hold by this fraction of them at least, all margins included. */
const LEAST = 0.8
/** How many ms a closing client waits for a Redis that does not answer its releases. */
const CLOSE_PATIENCE = 2_000

export class World implements Stage {
  readonly seed: number
  readonly timeline = new Timeline()
  readonly random: Random
  readonly trace: Trace
  readonly nets: readonly Net[]
  readonly clients: SimulatedClient[]
  failure: string | undefined
  readonly #plan: Plan
  readonly #checks: Checks | Beliefs
  readonly #promises: Promises
  readonly #jitter: Random
  #probed = false

  constructor(seed: number, kind: SimulatedKind, traced = false) {
    this.seed = seed
    this.random = new Random(seed, 1)
    this.#jitter = new Random(seed, 2)
    this.trace = new Trace(this.timeline, traced)
    this.#plan = planOf(seed, kind)
    const failed = (invariant: string, what: string) => this.#fail(`${invariant}: ${what}`)
    const { weathers, persists, replica, dead } = this.#plan
    const Judge = weathers[1] ? Beliefs : Checks
    this.#checks = new Judge(this.#plan, () => this.timeline.now, failed)
    this.#promises = new Promises(this.#plan, failed)
    const { timeline, random, trace } = this
    const made = (host: string) =>
      new Server(timeline, this.#checks.watcher, this.#plan.settings.tokenMemory, host, persists)
    const first = made('server0')
    this.nets = weathers.map((weather, i): Net => {
      const host = `server${weathers[1] ? i : ''}`
      const server = i === 0 || (replica && i === 1) ? first : made(host)
      return { host, replica: replica && i === 1, timeline, random, server, weather, trace }
    })
    const { settings, clients, calls, faults, healed } = this.#plan
    this.clients = Array.from({ length: clients }, (_, i) => {
      const process = new Process(`c${i}`, this.timeline, new Random(seed, 3 + i))
      const client = new SimulatedClient(this.nets, process, settings, kind, this.#checks)
      this.#checks.know(client)
      return client
    })
    for (const call of calls) {
      const client = this.clients[call.client] as SimulatedClient
      this.timeline.at(call.at, () => this.#call(client, call), client.process)
    }
    this.trace.note('world', () => `${weathers.length} servers${replica ? ', server1 is a replica of server0' : ''}`)
    if (dead.servers.length > 0) this.timeline.at(dead.at, () => kill(this, dead.servers, dead.how))
    for (const fault of faults) this.timeline.at(fault.at, () => strike(this, fault))
    this.timeline.at(healed, () => {
      heal(this)
      this.timeline.at(healed + POLL, () => this.#awaitEnd())
    })
  }

  get counts(): Checks['counts'] {
    return this.#checks.counts
  }

  /** Replaces Math.random while this history runs. */
  readonly jitter = () => this.#jitter.fraction()

  /** Runs events until one of them needs a turn of the event loop. Returns false if the history is over. */
  step(): boolean {
    for (;;) {
      const event = this.failure === undefined ? this.timeline.next() : undefined
      if (!event) return false
      try {
        event.run()
      } catch (error) {
        this.#fail(`thrown: ${error instanceof Error ? error.stack : error}`)
      }
      if (event.process) return true
    }
  }

  /** Checks the history after a turn of the event loop. */
  look(): void {
    this.#checks.look(this.timeline.now, this.nets)
    this.#promises.look(this.timeline.now, this.nets)
  }

  close(client: SimulatedClient): void {
    if (client.closing) return
    // `close` waits for at most CLOSE_PATIENCE without an answer from Redis, and a single request may wait for
    // `outageTimeout`. So the longer of these two times is allowed.
    const patience = Math.max(CLOSE_PATIENCE, this.#plan.settings.outageTimeout)
    this.#watch(`close`, client, patience + CLEANING, client.close())
  }

  forceRelease(client: SimulatedClient, key: string): void {
    if (!client.open) return
    const forced = this.#checks.forcing(key, client)
    const forcing = client.forceRelease(key).then(done => forced(done, this.nets))
    this.#watch(`forceRelease ${key}`, client, this.#plan.settings.outageTimeout, forcing)
  }

  #call(client: SimulatedClient, call: Call): void {
    if (!client.open) return
    const { key, request, abort } = call
    const { outageTimeout } = this.#plan.settings
    const controller = abort === undefined ? undefined : new AbortController()
    const once = request.timeout === 0
    const terms = once
      ? // If the grant arrives only after the lease has ended, the call sends a second request (src/key/requests.ts).
        // The second request may take as long as the first, so the call has twice the time of one request. If the
        // process is stopped, the second request may follow the stop. So the call has the time of one request after it.
        { patience: 2 * outageTimeout, again: outageTimeout }
      : {
          waitsFor: key,
          wants: request.wants,
          owner: request.owner,
          // The first attempt has a second for its answer, in which the process runs.
          ...(request.timeout !== undefined && { limit: Math.max(request.timeout, ATTEMPT), again: ATTEMPT }),
        }
    const open = this.#promises.begin(`lock ${key}`, client, this.timeline.now, terms)
    this.trace.note(client.process.name, () => `asks ${JSON.stringify({ ...call, at: undefined })}`)
    const timer =
      controller &&
      client.process.after(abort!, () => {
        this.#promises.hurry(open, this.timeline.now, 0)
        controller.abort(new Error('aborted by the caller'))
      })
    client
      .lock(key, { ...request, signal: controller?.signal })
      .then(
        lease => lease && this.#use(client, lease, call),
        error => this.trace.note(client.process.name, () => `rejects: ${error.message}`),
      )
      .finally(() => {
        timer?.cancel()
        this.#promises.settle(open)
      })
  }

  #use(client: SimulatedClient, lease: Lease, call: Call): void {
    const { process } = client
    const { hold, ending, renew, nested } = call
    this.#checks.used(lease, call.request.minHold ?? 0)
    if (nested) this.#nest(client, lease, call, nested)
    if (hold === undefined) return this.#release(client, lease, false)
    const use = this.#promises.begin(`use of ${lease.id}`, client, this.timeline.now)
    const pause = Math.max(Math.min(hold, call.request.lease) / 2, hold / 8)
    for (let after = pause; renew !== undefined && after > 0 && after < hold; after += pause) {
      process.after(after, () => this.#contest(call, client))
      process.after(after + (call.contested ?? 0), () => {
        if (client.open) this.#renew(client, lease, renew, Number.isFinite(call.request.maxHold))
      })
    }
    process.after(hold, () => {
      this.#promises.settle(use)
      if (ending !== 'never') this.#release(client, lease, ending === 'twice')
    })
  }

  #contest({ contested, key }: Call, client: SimulatedClient): void {
    const other = this.clients.find(each => each !== client && each.open)
    if (contested !== undefined && other)
      this.timeline.at(this.timeline.now, () => this.forceRelease(other, key), other.process)
  }

  /** Renews for `ms`. `limited`: the hold may end earlier all the same. */
  #renew(client: SimulatedClient, lease: Lease, ms: number, limited: boolean): void {
    const { process } = client
    const { stops } = process
    const asked = process.now()
    const renewing = lease.renew(ms).then(() => {
      const due = asked + ms * LEAST
      const left = lease.remaining()
      if (!limited && lease.held && process.stops === stops && process.now() + left < due)
        this.#fail(`I8: ${lease.id} was renewed for ${ms} ms, and resolves with ${left.toFixed(3)} ms left`)
    })
    this.#watch(`renew ${lease.id}`, client, this.#plan.settings.outageTimeout, renewing)
  }

  /** Takes the same lock while `lease` holds it, as a function called by `using` may do. */
  #nest(client: SimulatedClient, lease: Lease, call: Call, { how, wants, lease: ends, hold }: Nested): void {
    const { key, request } = call
    const { owner, fencingToken } = lease
    const timeout = how === 'once' ? 0 : undefined
    const fair = how === 'queue'
    const fixed = ends === undefined ? {} : { lease: ends, renew: false }
    const inner = { ...request, ...fixed, owner, wants, fair, fairAfter: undefined, timeout, signal: undefined }
    this.trace.note(client.process.name, () => `nests in ${lease.id}, ${how}, ${wants}`)
    const nesting = client.lock(key, inner).then(nestedLease => {
      const inside = nestedLease?.fencingToken === fencingToken
      // In a quorum, a hold may be on a server that is silent now. Then a nested single attempt finds no majority.
      const fails = !nestedLease && this.nets.length > 1
      if (lease.held && !this.#checks.tookAway(lease) && !inside && !fails) {
        this.#fail(`re-entry: ${nestedLease ? nestedLease.id : 'no lease'} is nested in ${lease.id}, which is held`)
      }
      if (!nestedLease) return
      this.#use(client, nestedLease, { ...call, hold, ending: 'release', renew: undefined, nested: undefined })
    })
    this.#watch(`nested in ${lease.id}`, client, Number.POSITIVE_INFINITY, nesting)
  }

  #release(client: SimulatedClient, lease: Lease, twice: boolean): void {
    this.trace.note(client.process.name, () => `releases ${lease.id}`)
    const told = lease.release().then(
      live => this.#checks.released(lease, live),
      () => this.#checks.abandoned(lease),
    )
    this.#watch(`release ${lease.id}`, client, this.#plan.settings.outageTimeout, told)
    if (!twice) return
    const again = lease.release().then(live => {
      if (live) this.#fail(`I5: the second release of ${lease.id} reports that it ended the hold`)
    })
    this.#watch(`second release ${lease.id}`, client, this.#plan.settings.outageTimeout, again)
  }

  #watch(what: string, client: SimulatedClient, patience: number, promise: Promise<unknown>): void {
    const open = this.#promises.begin(what, client, this.timeline.now, { patience })
    const done = (outcome: unknown) => {
      this.trace.note(client.process.name, () => `${what}: ${outcome instanceof Error ? outcome.message : 'done'}`)
      this.#promises.settle(open)
    }
    promise.then(done, done)
  }

  /** Part 2: checks whether every promise has settled and every lease has ended. If not, checks again later. */
  #awaitEnd(): void {
    const { timeline } = this
    const open = this.#promises.open
    if (open.length === 0 && this.#checks.openLeases === 0 && timeline.now >= this.#plan.calm && !this.#probed) {
      this.#probed = true
      if (this.#plan.steady)
        for (const client of this.clients) timeline.at(timeline.now, () => this.#probe(client), client.process)
      timeline.at(timeline.now + POLL, () => this.#awaitEnd())
    } else if (open.length === 0 && this.#checks.openLeases === 0 && this.#probed) {
      this.trace.note('world', () => 'rests')
      timeline.at(timeline.now + REST, () => this.#closeAll())
    } else if (timeline.now < this.#plan.end) {
      timeline.at(timeline.now + POLL, () => this.#awaitEnd())
    } else {
      this.#fail(`I4: not over by ${timeline.now.toFixed(0)}: ${open.join('; ')}; leases: ${this.#checks.openLeases}`)
    }
  }

  /** After all faults, each client can take each lock again. */
  #probe(client: SimulatedClient): void {
    if (!client.open) return
    const request = {
      ...(this.#plan.calls[0] as Call).request,
      timeout: undefined,
      signal: undefined,
      fairAfter: undefined,
      owner: undefined,
      minHold: undefined,
      maxWaiters: undefined,
    }
    for (const key of this.#plan.keys) {
      const taking = client.lock(key, request).then(
        lease => lease?.release(),
        error => this.#fail(`I4: ${client.process.name} cannot take ${key} any more: ${error.message}`),
      )
      this.#watch(`lock ${key} again`, client, Number.POSITIVE_INFINITY, taking)
    }
  }

  /**
   * Begins part 4 as soon as no client keeps anything. That may take longer than REST: the cleanup for callers that
   * have given up runs in the background, and may still have to wait for the network.
   */
  #closeAll(): void {
    const residue = this.clients.filter(({ open }) => open).flatMap(({ residue }) => residue ?? [])
    if (residue.length > 0) {
      if (this.timeline.now > this.#plan.calm + 2 * REST)
        return this.#fail(`I7: idle clients keep ${residue.join('; ')}`)
      this.timeline.at(this.timeline.now + REST / 4, () => this.#closeAll())
      return
    }
    for (const client of this.clients) {
      if (!client.open) continue
      this.timeline.at(this.timeline.now, () => this.close(client), client.process)
    }
    const expired = this.timeline.now + 10_000 + 2 * this.#plan.settings.tokenMemory
    this.timeline.at(expired, () => this.#lookForRemains())
  }

  #lookForRemains(): void {
    for (const client of this.clients) {
      const { dead, name, armed } = client.process
      if (!dead && !client.closed) this.#fail(`I6: ${name} has not closed`)
      if (!dead && armed > 0) this.#fail(`I7: ${name} is closed and keeps ${armed} timers`)
    }
    const unsettled = this.#promises.open
    if (unsettled.length > 0) this.#fail(`I6: never settled: ${unsettled.join('; ')}`)
    const keys = this.nets.flatMap(({ server }) => server.keys)
    if (keys.length > 0) this.#fail(`I7: keys are left: ${keys.join(' ')}`)
  }

  #fail(what: string): void {
    if (this.failure !== undefined) return
    this.failure = what
    this.trace.note('world', () => `FAILS ${what}`)
  }
}

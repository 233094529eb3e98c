/**
 * The world of a scene: three processes, one Redis, and the network between them. The clients are those of the package,
 * and Redis runs the scripts of the package, in Lua. The Redis itself, the network and the time are those of the
 * project's simulation (test/simulation/world.ts), so a scene depends on nothing but its acts.
 */
import { Random } from '../../test/kit/random.ts'
import { keysOf, type LockState } from '../../test/simulation/lock-state.ts'
import type { Net } from '../../test/simulation/network.ts'
import { Server } from '../../test/simulation/server.ts'
import { Timeline } from '../../test/simulation/timeline.ts'
import { Trace } from '../../test/simulation/trace.ts'
import { nobody } from '../../test/simulation/witness.ts'
import { KEY, type Life, Member, type Terms } from './member.ts'
import { type Act, type Name, names } from './scene.ts'

const SEED = 7
/** As clients have it who do not say: the scripts contain this number. */
const TOKEN_MEMORY = 600_000
/** The time that a message takes in one direction, in ms. */
const DELAY = { least: 5, most: 25, spike: 0, spikes: 0 }
/** How many notes of each kind, and how many grants, are remembered. */
const NOTES = 80
const GRANTS = 8
/** The time between two looks at what the processes do, and for how long they are remembered, in ms. */
const LOOK = 50
const REMEMBERED = 30_000
/** The process that takes the lock by force. */
const YOU = 'You'
const LOCK = `lock:{${KEY}}`

export interface Note {
  readonly at: number
  readonly who: string
  readonly what: string
}

/** Who holds the lock, as Redis has it. */
export interface Holding {
  readonly id: string
  readonly who: string
  readonly token: number
  /** The length of the lease, and what is left of it, in ms. */
  readonly lease: number
  readonly left: number
}

/** What a process did in a stretch of time. `holds`: as Redis has it. */
export interface Stretch {
  readonly who: Name
  readonly does: 'holds' | 'waits' | 'nothing'
  readonly life: Life
  readonly from: number
  to: number
}

/** The lock went from one process to another, in whatever way. */
export interface HandOff {
  readonly at: number
  readonly from: string
  readonly to: string
}

export interface Grant {
  readonly at: number
  readonly who: string
  readonly token: number
  readonly via: string
  readonly waited: number
}

/** A key in Redis, and each entry of its value. */
export interface Key {
  readonly name: string
  readonly entries: readonly (readonly [name: string, value: string])[]
  /** ms */
  readonly expiresIn: number
}

/** Hears what the simulation notes about the scripts and messages. The beats of idle connections would drown it. */
class Overheard extends Trace {
  readonly #hear: (who: string, what: string) => void

  constructor(timeline: Timeline, hear: (who: string, what: string) => void) {
    super(timeline, false)
    this.#hear = hear
  }

  override note(who: string, what: () => string): void {
    const text = what()
    if (!/^hears beat$/.test(text)) this.#hear(who, text)
  }
}

export class World {
  readonly timeline = new Timeline()
  /** The acts so far, and those to come: of a link. */
  readonly acts: Act[] = []
  /** What was done, and what the processes have learned from their clients; the latest first, as in all these lists. */
  readonly notes: Note[] = []
  /** Scripts and messages. */
  readonly trace: Note[] = []
  readonly grants: Grant[] = []
  readonly stretches: Stretch[] = []
  readonly handOffs: HandOff[] = []
  readonly members = new Map<Name, Member>()
  readonly terms: Terms = { work: 2_000, lease: 6_000 }
  readonly #server: Server
  readonly #net: Net
  readonly #you: Member
  readonly #lives = new Map<string, number>()
  readonly #jitter = new Random(SEED, 1)
  #lastHolding: Holding | undefined

  constructor(acts: readonly Act[]) {
    const { timeline } = this
    this.#server = new Server(timeline, nobody, TOKEN_MEMORY, 'Redis')
    this.#net = {
      host: 'Redis',
      timeline,
      random: new Random(SEED),
      server: this.#server,
      trace: new Overheard(timeline, (who, what) => this.#keep(this.trace, { who, what }, NOTES)),
      weather: {
        ...{ delay: DELAY, messageLoss: 0, messageEcho: 0, messageLate: 0, noScript: 0, lingers: 0 },
        ...{ refusal: undefined, unreachable: new Map() },
      },
    }
    for (const name of names) this.members.set(name, this.#member(name))
    this.#you = this.#member(YOU)
    for (const act of acts) this.#plan(act)
    this.#look()
  }

  get now(): number {
    return this.timeline.now
  }

  /** The server's time, in ms. */
  get serverNow(): number {
    return this.#server.now
  }

  get lock(): LockState {
    return this.#server.lock(LOCK)
  }

  get holding(): Holding | undefined {
    const { holder, holds } = this.lock
    const left = Math.max(...holds.values()) - this.serverNow
    if (!holder || !(left >= 0)) return undefined
    const { token, claim } = holder
    return { id: claim.id, who: claim.label, token, lease: claim.lease, left }
  }

  /** What Redis has of the lock. Its first key is a hash, the others are sorted sets. */
  get keys(): readonly Key[] {
    const { data } = this.#server
    const present = keysOf(LOCK).filter(name => data.has(name))
    return present.map(name => ({
      name,
      entries: name === LOCK ? [...data.hash(name)!] : data.sortedSet(name)!.members.map(membered),
      expiresIn: data.livesUntil(name)! - this.serverNow,
    }))
  }

  /** Does something now. It becomes part of the scene. */
  act(what: { [A in Act as A['what']]: Omit<A, 'at'> }[Act['what']]): void {
    this.#plan({ ...what, at: Math.ceil(this.now) } as Act)
    this.acts.sort((a, b) => a.at - b.at)
  }

  /** Lets `ms` pass: runs every event that is due, and after each the promises that it settles. */
  async pass(ms: number): Promise<void> {
    const { random } = Math
    let over = false
    this.timeline.at(this.now + ms, () => {
      over = true
    })
    try {
      while (!over) {
        Math.random = () => this.#jitter.fraction()
        this.timeline.next()?.run()
        if (!over) await turnOfTheLoop()
      }
    } finally {
      Math.random = random
    }
  }

  #plan(act: Act): void {
    this.acts.push(act)
    this.timeline.at(act.at, () => this.#do(act))
  }

  #do(act: Act): void {
    if ('ms' in act) this.terms[act.what] = act.ms
    else if ('who' in act) this.#doTo(act.who, act.what)
    else if (act.what === 'force') {
      this.#note(YOU, 'force the release')
      void this.#you.locks.forceRelease(KEY)
    } else this.#freezeHolder()
  }

  #doTo(name: Name, what: Extract<Act, { who: Name }>['what']): void {
    const member = this.members.get(name)!
    const { process } = member
    if (what === 'start' && process.dead) {
      const next = this.#member(name)
      this.members.set(name, next)
      next.turn(member.mode)
    }
    if (what === 'start' || process.dead) return
    if (what === 'fair' || what === 'unfair' || what === 'idle') member.mode = what
    else this.#note(YOU, `${what} ${name}`)
    // The process itself asks: not before it thaws.
    if (what === 'ask') this.timeline.at(this.now, () => void member.ask(member.mode !== 'unfair'), process)
    else if (what === 'kill') member.kill()
    else if (what === 'freeze') process.freeze()
    else if (what === 'thaw') process.thaw()
    else if (what === 'cut') member.cutLine()
    else if (what === 'mend') member.mendLine()
    else this.timeline.at(this.now, () => member.turn(what), process)
  }

  /** Freezes the holder's process until its lease has ended, as a long pause of its garbage collector might. */
  #freezeHolder(): void {
    const { holding } = this
    const member = this.members.get(holding?.who as Name)
    if (!holding || !member || member.process.frozen || member.process.dead) return
    this.#note(YOU, `freeze ${member.name} until its lease has ended`)
    member.process.freeze()
    this.timeline.at(this.now + holding.left + 1_000, () => {
      this.#note(YOU, `thaw ${member.name}`)
      member.process.thaw()
    })
  }

  #member(name: string): Member {
    const life = this.#lives.get(name) ?? 0
    this.#lives.set(name, life + 1)
    return new Member(name, life, this.#net, SEED, this.terms, {
      says: (who, what) => this.#note(who, what),
      granted: (who, { fencingToken, via, waited }) => {
        this.#keep(this.grants, { who, token: fencingToken, via, waited }, GRANTS)
      },
    })
  }

  #note(who: string, what: string): void {
    this.#keep(this.notes, { who, what }, NOTES)
  }

  #keep<T extends { readonly at: number }>(list: T[], what: Omit<T, 'at'>, most: number): void {
    list.unshift({ ...what, at: this.now } as T)
    list.splice(most)
  }

  /** Looks at what the processes do, again and again. */
  #look(): void {
    const { now, holding, stretches, handOffs } = this
    for (const [who, member] of this.members) {
      const does = holding?.who === who ? 'holds' : member.waits ? 'waits' : 'nothing'
      const { life } = member
      const last = stretches.find(each => each.who === who)
      if (last) last.to = now
      if (last?.does !== does || last.life !== life) stretches.unshift({ who, does, life, from: now, to: now })
    }
    const before = this.#lastHolding
    if (holding && before && holding.id !== before.id) handOffs.unshift({ at: now, from: before.who, to: holding.who })
    this.#lastHolding = holding ?? before
    while (now - (stretches.at(-1)?.to ?? now) > REMEMBERED) stretches.pop()
    while (now - (handOffs.at(-1)?.at ?? now) > REMEMBERED) handOffs.pop()
    this.timeline.at(now + LOOK, () => this.#look())
  }
}

const membered = ({ member, score }: { readonly member: string; readonly score: number }) =>
  [member, String(score)] as const

const channel = new MessageChannel()
const waiting: (() => void)[] = []
channel.port1.onmessage = () => waiting.shift()?.()

/** Resolves when all promises that are settled now have run. */
function turnOfTheLoop(): Promise<void> {
  return new Promise(resolve => {
    waiting.push(resolve)
    channel.port2.postMessage(0)
  })
}

/**
 * A TCP proxy that knows Redis's protocol. It passes on whole frames: commands, replies and messages. A test can give
 * it a rule for certain frames, for example for the reply to a release or for the message of a grant, and can later
 * lift the rule. A connection that sends SUBSCRIBE counts as the client's connection for messages.
 *
 * The first rule that matches a frame decides what happens to it:
 *  drop    The frame is lost, and the connection stays open. Dropping every frame makes the connection half-open.
 *  hold    The frame waits until the rule is lifted. Later frames on the same connection wait behind it, as in TCP.
 *  cut     The frame is lost, and its connection is cut.
 *  sever   The client's side of the connection is cut at once. The frame reaches the server when the rule is lifted.
 *  twice   The frame arrives twice.
 *  { delay } The frame arrives that many ms later.
 */
import type { Socket } from 'node:net'
import { channelOf, commandOf, Frames, messageOf } from './frames.ts'
import { Relay } from './relay.ts'

export type Direction = 'up' | 'down'
export type Kind = 'commands' | 'messages'
export type Deed = 'drop' | 'hold' | 'cut' | 'sever' | 'twice' | { readonly delay: number }

/**
 * Selects the frames that a rule applies to. An absent field matches every frame. For a command, `name` is the name of
 * the command or of the script. For a reply, it is the name of the command that the reply answers. For a message, it is
 * the message's first word.
 */
export interface Where {
  readonly direction?: Direction
  readonly kind?: Kind
  readonly name?: string
  /** Maximum number of frames that the rule applies to. Default: no limit. */
  readonly times?: number
}

export class Rule {
  readonly where: Where
  readonly deed: Deed
  /** Resolves when the rule has been applied to a frame for the first time. */
  readonly happened: Promise<void>
  count = 0
  lifted = false
  readonly #lifted: () => void
  #happen!: () => void

  constructor(where: Where, deed: Deed, lifted: () => void) {
    this.where = where
    this.deed = deed
    this.#lifted = lifted
    this.happened = new Promise(resolve => {
      this.#happen = resolve
    })
  }

  fits(direction: Direction, kind: Kind, name: string): boolean {
    const { where } = this
    if (this.lifted || this.count >= (where.times ?? Number.POSITIVE_INFINITY)) return false
    if (direction !== (where.direction ?? direction) || kind !== (where.kind ?? kind)) return false
    if (name !== (where.name ?? name)) return false
    this.count += 1
    this.#happen()
    return true
  }

  /** Ends the rule: it matches no more frames, and the frames that it holds continue. */
  lift(): void {
    this.lifted = true
    this.#lifted()
  }
}

interface Parcel {
  readonly data: Buffer
  readonly due: number
  readonly holder: Rule | undefined
}

/** One connection of a client through the proxy, and the data in transit. */
class Wire {
  readonly client: Socket
  readonly server: Socket
  kind: Kind = 'commands'
  /** The channels that the client has subscribed to on this connection. */
  readonly channels = new Set<string>()
  /** Directions in which nothing passes any longer, whatever the rules say. */
  readonly dead = new Set<Direction>()
  /** Names of the commands that have not been answered yet. */
  readonly #asked: string[] = []
  readonly #queues = { up: [] as Parcel[], down: [] as Parcel[] }
  readonly #rules: readonly Rule[]
  #severed = false

  constructor(client: Socket, server: Socket, rules: readonly Rule[], gone: () => void) {
    this.client = client
    this.server = server
    this.#rules = rules
    this.#read('up', client)
    this.#read('down', server)
    const end = () => {
      if (this.#severed && !server.destroyed) return
      gone()
      this.cut()
    }
    for (const socket of [client, server]) socket.on('error', end).on('close', end)
  }

  cut(): void {
    this.client.destroy()
    this.server.destroy()
  }

  pump(direction: Direction): void {
    const queue = this.#queues[direction]
    const to = direction === 'up' ? this.server : this.client
    const now = performance.now()
    while (queue[0] && queue[0].due <= now && (queue[0].holder?.lifted ?? true)) {
      const { data } = queue.shift()!
      if (!to.destroyed) to.write(data)
    }
    if (queue[0] && queue[0].due > now) setTimeout(() => this.pump(direction), queue[0].due - now)
    // The client's side is already cut. Everything that the client sent has now reached the server, so close the
    // server's side, too.
    if (this.#severed && direction === 'up' && queue.length === 0) this.server.end()
  }

  #read(direction: Direction, from: Socket): void {
    const frames = new Frames()
    from.on('data', data => {
      for (const frame of frames.take(data)) {
        if (from.destroyed) return
        this.#treat(direction, frame)
      }
      this.pump(direction)
    })
  }

  #treat(direction: Direction, data: Buffer): void {
    const name = this.#nameOf(direction, data)
    if (this.dead.has(direction)) return
    const rule = this.#rules.find(each => each.fits(direction, this.kind, name))
    const deed = rule?.deed
    const delay = typeof deed === 'object' ? deed.delay : 0
    const parcel = {
      data,
      due: performance.now() + delay,
      holder: deed === 'hold' || deed === 'sever' ? rule : undefined,
    }
    if (deed === 'drop') return
    if (deed === 'cut') return this.cut()
    this.#queues[direction].push(parcel)
    if (deed === 'twice') this.#queues[direction].push(parcel)
    if (deed === 'sever') {
      this.#severed = true
      this.client.destroy()
    }
  }

  #nameOf(direction: Direction, data: Buffer): string {
    if (direction === 'up') {
      const name = commandOf(data)
      if (name === 'subscribe' || name === 'ssubscribe') {
        this.kind = 'messages'
        this.channels.add(channelOf(data))
      }
      this.#asked.push(name)
      return name
    }
    const message = messageOf(data)
    if (message !== undefined) return message
    const asked = this.#asked.shift() ?? ''
    return data.toString('latin1', 0, 9) === '-NOSCRIPT' ? 'noscript' : asked
  }
}

export class FrameProxy extends Relay {
  readonly #wires = new Set<Wire>()
  readonly #rules: Rule[] = []

  protected override join(client: Socket, server: Socket): void {
    const wire: Wire = new Wire(client, server, this.#rules, () => this.#wires.delete(wire))
    this.#wires.add(wire)
  }

  rule(where: Where, deed: Deed): Rule {
    const rule = new Rule(where, deed, () => this.#pump())
    this.#rules.push(rule)
    return rule
  }

  /** Lifts every rule and accepts connections. Held frames arrive now; dropped ones are lost. */
  heal(): void {
    this.accept()
    for (const rule of this.#rules.splice(0)) rule.lift()
  }

  override cut(kind?: Kind): void {
    for (const wire of this.#wiresOf(kind)) wire.cut()
  }

  /**
   * Makes the present connections half-open until the client closes them. Later connections are not affected. `noticed`
   * tells whether the client has closed all of them.
   */
  halfOpen(direction: Direction, kind?: Kind): { readonly noticed: () => boolean } {
    const dead = this.#wiresOf(kind)
    for (const wire of dead) wire.dead.add(direction)
    return { noticed: () => dead.every(wire => !this.#wires.has(wire)) }
  }

  /** Stops reading from the server, so that the server's output piles up. */
  stopReading(kind: Kind): void {
    for (const wire of this.#wiresOf(kind)) wire.server.pause()
  }

  readOn(): void {
    for (const wire of this.#wires) wire.server.resume()
  }

  /**
   * Connects clients to another server from now on. Cuts the present connections of the kind `cut`; by default, all of
   * them.
   */
  switchTo(target: string, cut?: Kind | 'none'): void {
    this.leadTo(target)
    if (cut !== 'none') this.cut(cut)
  }

  connections(kind?: Kind): number {
    return this.#wiresOf(kind).length
  }

  /** Returns the channels that the present connections have subscribed to. */
  channels(): string[] {
    return this.#wiresOf('messages').flatMap(({ channels }) => [...channels])
  }

  #wiresOf(kind?: Kind): Wire[] {
    return [...this.#wires].filter(wire => wire.kind === (kind ?? wire.kind))
  }

  #pump(): void {
    for (const wire of this.#wires) {
      wire.pump('up')
      wire.pump('down')
    }
  }
}

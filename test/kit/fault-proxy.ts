/**
 * A TCP proxy between client and Redis that breaks things on command. Directions: 'up' to the server, 'down' to the client.
 * It is transparent until told otherwise.
 */
import { connect, createServer, type Server, type Socket } from 'node:net'

type Direction = 'up' | 'down'

interface Pipe {
  readonly client: Socket
  readonly server: Socket
}

export class FaultProxy {
  readonly #server: Server
  readonly #pipes = new Set<Pipe>()
  readonly #swallowed = new Set<Direction>()
  readonly #held = new Set<Direction>()
  readonly #pumps = new Set<() => void>()
  #delay = 0
  #filter: ((direction: Direction, data: Buffer) => Buffer | undefined) | undefined
  #refusing = false
  url = ''

  protected constructor(port: number) {
    this.#server = createServer(client => {
      if (this.#refusing) return client.destroy()
      const pipe = { client, server: connect(port, '127.0.0.1') }
      this.#pipes.add(pipe)
      this.#forward('up', client, pipe.server)
      this.#forward('down', pipe.server, client)
      const end = () => {
        this.#pipes.delete(pipe)
        client.destroy()
        pipe.server.destroy()
      }
      for (const socket of [client, pipe.server]) socket.setNoDelay(true).on('error', end).on('close', end)
    })
  }

  /** A proxy in front of `url`. */
  static async open(url: string): Promise<FaultProxy> {
    const proxy = new FaultProxy(Number(new URL(url).port))
    await proxy.listen()
    return proxy
  }

  protected async listen(): Promise<void> {
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve))
    const { port } = this.#server.address() as { port: number }
    this.url = `redis://127.0.0.1:${port}`
  }

  get connections(): number {
    return this.#pipes.size
  }

  /** Cuts every connection; new ones are let through, unless `refuse` was called. */
  cut(): void {
    for (const { client, server } of this.#pipes) {
      client.destroy()
      server.destroy()
    }
  }

  /** Refuses new connections until `accept`. */
  refuse(): void {
    this.#refusing = true
  }

  accept(): void {
    this.#refusing = false
  }

  /** Swallows what goes in this direction, without closing anything: a half-open connection. */
  swallow(direction: Direction): void {
    this.#swallowed.add(direction)
  }

  /** Keeps back what goes in this direction, until `heal`. */
  hold(direction: Direction): void {
    this.#held.add(direction)
  }

  /** Lets everything in both directions arrive this many ms later. */
  delay(ms: number): void {
    this.#delay = ms
  }

  /** Lets everything through again; what was held back arrives now, what was swallowed is lost. */
  heal(): void {
    this.#swallowed.clear()
    this.#held.clear()
    this.#filter = undefined
    this.#delay = 0
    for (const pump of this.#pumps) pump()
  }

  /** Shows each piece of data to `filter`, which returns what to forward, or undefined for nothing. */
  filter(filter: (direction: Direction, data: Buffer) => Buffer | undefined): void {
    this.#filter = filter
  }

  close(): Promise<void> {
    this.cut()
    return new Promise(resolve => this.#server.close(() => resolve()))
  }

  /** Everything passes through one queue, so that nothing overtakes what is held back or late. */
  #forward(direction: Direction, from: Socket, to: Socket): void {
    const queue: { data: Buffer; due: number }[] = []
    const pump = () => {
      while (queue[0] && queue[0].due <= performance.now() && !this.#held.has(direction)) {
        const { data } = queue.shift()!
        if (!to.destroyed) to.write(data)
      }
      if (queue[0] && !this.#held.has(direction)) setTimeout(pump, Math.max(1, queue[0].due - performance.now()))
    }
    this.#pumps.add(pump)
    from.on('close', () => this.#pumps.delete(pump))
    from.on('data', data => {
      if (this.#swallowed.has(direction)) return
      const passed = this.#filter ? this.#filter(direction, data) : data
      if (!passed) return
      queue.push({ data: passed, due: Math.max(performance.now() + this.#delay, queue.at(-1)?.due ?? 0) })
      pump()
    })
  }
}

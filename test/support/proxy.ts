/**
 * A TCP proxy between client and Redis that breaks things on command. Directions: 'up' to the server, 'down' to the client.
 * It is transparent until told otherwise.
 */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

type Direction = 'up' | 'down'

interface Pipe {
  readonly client: Socket
  readonly server: Socket
}

export class FaultProxy {
  readonly #server: Server
  readonly #pipes = new Set<Pipe>()
  readonly #swallowed = new Set<Direction>()
  #filter: ((direction: Direction, data: Buffer) => Buffer | undefined) | undefined
  #refusing = false
  url = ''

  private constructor(port: number) {
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

  /** A proxy in front of `url`, closed after the test. */
  static async before(url: string): Promise<FaultProxy> {
    const proxy = new FaultProxy(Number(new URL(url).port))
    await new Promise<void>(resolve => proxy.#server.listen(0, '127.0.0.1', resolve))
    const { port } = proxy.#server.address() as { port: number }
    proxy.url = `redis://127.0.0.1:${port}`
    onTestFinished(() => proxy.close())
    return proxy
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

  /** Lets everything through again; what was swallowed is lost. */
  heal(): void {
    this.#swallowed.clear()
    this.#filter = undefined
  }

  /** Shows each piece of data to `filter`, which returns what to forward, or undefined for nothing. */
  filter(filter: (direction: Direction, data: Buffer) => Buffer | undefined): void {
    this.#filter = filter
  }

  close(): Promise<void> {
    this.cut()
    return new Promise(resolve => this.#server.close(() => resolve()))
  }

  #forward(direction: Direction, from: Socket, to: Socket): void {
    from.on('data', data => {
      if (this.#swallowed.has(direction)) return
      const passed = this.#filter ? this.#filter(direction, data) : data
      if (passed && !to.destroyed) to.write(passed)
    })
  }
}

/**
 * A TCP proxy between client and Redis with which a test can disturb the connections. 'up' is the direction to the
 * server, 'down' the direction to the client. At first the proxy passes everything.
 */
import type { Socket } from 'node:net'
import { Relay } from './relay.ts'

type Direction = 'up' | 'down'

interface Pipe {
  readonly client: Socket
  readonly server: Socket
}

export class FaultProxy extends Relay {
  readonly #pipes = new Set<Pipe>()
  readonly #swallowed = new Set<Direction>()
  readonly #held = new Set<Direction>()
  readonly #pumps = new Set<() => void>()
  #delay = 0

  protected override join(client: Socket, server: Socket): void {
    const pipe = { client, server }
    this.#pipes.add(pipe)
    this.#forward('up', client, server)
    this.#forward('down', server, client)
    const end = () => {
      this.#pipes.delete(pipe)
      client.destroy()
      server.destroy()
    }
    for (const socket of [client, server]) socket.on('error', end).on('close', end)
  }

  get connections(): number {
    return this.#pipes.size
  }

  override cut(): void {
    for (const { client, server } of this.#pipes) {
      client.destroy()
      server.destroy()
    }
  }

  /** Discards everything in this direction but keeps the connections, which are now half-open. */
  swallow(direction: Direction): void {
    this.#swallowed.add(direction)
  }

  /** Holds back everything in this direction until `heal`. */
  hold(direction: Direction): void {
    this.#held.add(direction)
  }

  /** Delays everything in both directions by this many ms. */
  delay(ms: number): void {
    this.#delay = ms
  }

  /** Passes everything again. Held-back data arrives now; swallowed data is lost. */
  heal(): void {
    this.#swallowed.clear()
    this.#held.clear()
    this.#delay = 0
    for (const pump of this.#pumps) pump()
  }

  /** Forwards data through a queue, so that no data overtakes earlier data that is held back or delayed. */
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
      queue.push({ data, due: Math.max(performance.now() + this.#delay, queue.at(-1)?.due ?? 0) })
      pump()
    })
  }
}

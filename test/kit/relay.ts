/** The base of all proxies: a port that forwards connections to a server of this machine. */
import { connect, createServer, type Server, type Socket } from 'node:net'

export abstract class Relay {
  readonly #server: Server
  #target: number
  #refusing = false
  url = ''

  constructor(target: string) {
    this.#target = portOf(target)
    this.#server = createServer(client => {
      if (this.#refusing) client.destroy()
      else this.join(client.setNoDelay(true), connect(this.#target, '127.0.0.1').setNoDelay(true))
    })
  }

  /** Opens a proxy in front of this server. */
  static async open<P extends Relay>(this: new (target: string) => P, target: string): Promise<P> {
    const proxy = new this(target)
    await proxy.#listen()
    return proxy
  }

  async #listen(): Promise<void> {
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve))
    const { port } = this.#server.address() as { port: number }
    this.url = `redis://127.0.0.1:${port}`
  }

  /** Handles a new connection of a client. `server` is the connection that the proxy has opened for this client. */
  protected abstract join(client: Socket, server: Socket): void

  /** Cuts every connection. New connections are still accepted, unless `refuse` is in effect. */
  abstract cut(): void

  /** Refuses new connections, or accepts them again. */
  refuse(refusing = true): void {
    this.#refusing = refusing
  }

  accept(): void {
    this.refuse(false)
  }

  /** Sends new connections to another server. */
  protected leadTo(target: string): void {
    this.#target = portOf(target)
  }

  close(): Promise<void> {
    this.cut()
    return new Promise(resolve => this.#server.close(() => resolve()))
  }
}

function portOf(url: string): number {
  return Number(new URL(url).port)
}

/** What all proxies are: a port that passes connections on to a server of this machine. */
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

  /** A proxy before this server. */
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

  /** What becomes of a new connection. */
  protected abstract join(client: Socket, server: Socket): void

  /** Cuts every connection; new ones are let through, unless they are refused. */
  abstract cut(): void

  /** Refuses new connections, or lets them in again. */
  refuse(refusing = true): void {
    this.#refusing = refusing
  }

  accept(): void {
    this.refuse(false)
  }

  /** Another server is behind the address for new connections. */
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

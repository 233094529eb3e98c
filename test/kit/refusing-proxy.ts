/**
 * A proxy before a real server that answers in its place what the test says, so that any state of a server can be had for as
 * long as it takes. What it answers itself it has the server answer with a PING first, so replies keep their order.
 */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { commandOf, Frames, messageOf } from './frames.ts'

const ping = Buffer.from('*1\r\n$4\r\nPING\r\n')

/** Replies as a server would give them. */
export function errorReply(words: string): string {
  return `-${words}\r\n`
}

/** The reply to a command, by its name in small letters; undefined: that of the server. 'none': its connection falls silent. */
export type Answers = (command: string) => string | undefined

export class RefusingProxy {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #answers: Answers = () => undefined
  #target: number
  url = ''

  private constructor(target: string) {
    this.#target = Number(new URL(target).port)
    this.#server = createServer(client => this.#join(client))
  }

  /** Closed after the test. */
  static async open(target: string): Promise<RefusingProxy> {
    const proxy = new RefusingProxy(target)
    await new Promise<void>(resolve => proxy.#server.listen(0, '127.0.0.1', resolve))
    const { port } = proxy.#server.address() as { port: number }
    proxy.url = `redis://127.0.0.1:${port}`
    onTestFinished(() => proxy.#close())
    return proxy
  }

  /** From now on, on the present connections, too. */
  answer(answers: Answers): void {
    this.#answers = answers
  }

  /** Another server is behind the address from now on. */
  switchTo(target: string): void {
    this.#target = Number(new URL(target).port)
    for (const socket of this.#sockets) socket.destroy()
  }

  #join(client: Socket): void {
    const server = connect(this.#target, '127.0.0.1')
    /** For each command that is not answered yet, the reply that it gets. */
    const replies: (string | undefined)[] = []
    let silent = false
    const [up, down] = [new Frames(), new Frames()]
    client.on('data', data => {
      for (const frame of up.take(data)) {
        const reply = this.#answers(commandOf(frame))
        replies.push(reply)
        server.write(reply === undefined ? frame : ping)
      }
    })
    server.on('data', data => {
      for (const frame of down.take(data)) {
        const reply = messageOf(frame) === undefined ? replies.shift() : undefined
        silent ||= reply === 'none'
        if (!silent) client.write(reply ?? frame)
      }
    })
    for (const socket of [client, server]) {
      this.#sockets.add(socket)
      const end = () => {
        this.#sockets.delete(socket)
        client.destroy()
        server.destroy()
      }
      socket.setNoDelay(true).on('error', end).on('close', end)
    }
  }

  #close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    return new Promise(resolve => this.#server.close(() => resolve()))
  }
}

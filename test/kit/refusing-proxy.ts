/**
 * A proxy before a real server that answers in its place what the test says, so that any state of a server can be had for as
 * long as it takes. What it answers itself it has the server answer with a PING first, so replies keep their order.
 */
import type { Socket } from 'node:net'
import { commandOf, Frames, messageOf } from './frames.ts'
import { Relay } from './relay.ts'

const ping = Buffer.from('*1\r\n$4\r\nPING\r\n')

/** Replies as a server would give them. */
export function errorReply(words: string): string {
  return `-${words}\r\n`
}

/** The reply to a command, by its name in small letters; undefined: that of the server. 'none': its connection falls silent. */
export type Answers = (command: string) => string | undefined

export class RefusingProxy extends Relay {
  readonly #sockets = new Set<Socket>()
  #answers: Answers = () => undefined

  /** From now on, on the present connections, too. */
  answer(answers: Answers): void {
    this.#answers = answers
  }

  /** Another server is behind the address from now on. */
  switchTo(target: string): void {
    this.leadTo(target)
    this.cut()
  }

  override cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  protected override join(client: Socket, server: Socket): void {
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
      socket.on('error', end).on('close', end)
    }
  }
}

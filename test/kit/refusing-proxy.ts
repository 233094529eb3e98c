/**
 * A proxy in front of a real server that replies what the test says, so that a test can simulate any state of the
 * server for as long as it needs. For each command that the proxy answers, it sends the server a PING instead, so that
 * replies keep their order.
 */
import type { Socket } from 'node:net'
import { commandOf, Frames, messageOf } from './frames.ts'
import { Relay } from './relay.ts'

const ping = Buffer.from('*1\r\n$4\r\nPING\r\n')

/** Replies as a server would send them. */
export function errorReply(words: string): string {
  return `-${words}\r\n`
}

/**
 * The reply to a command, given its name in lower case. Undefined passes the server's reply; 'none' makes the
 * connection fall silent.
 */
export type Answers = (command: string) => string | undefined

export class RefusingProxy extends Relay {
  readonly #sockets = new Set<Socket>()
  #answers: Answers = () => undefined

  /** Takes effect at once, also on the present connections. */
  answer(answers: Answers): void {
    this.#answers = answers
  }

  /** Connects clients to another server from now on. */
  switchTo(target: string): void {
    this.leadTo(target)
    this.cut()
  }

  override cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  protected override join(client: Socket, server: Socket): void {
    /** For each unanswered command, the reply to give it. */
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

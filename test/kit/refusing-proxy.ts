/**
 * A proxy in front of a real server. The proxy sends the replies that the test chooses, so that the test can simulate
 * any state of the server for as long as it needs.
 *
 * When the proxy answers a command itself, it sends the server a PING instead of the command, and replaces the reply to
 * the PING. So the client receives all replies in the order of its commands.
 */
import type { Socket } from 'node:net'
import { commandOf, Frames, messageOf } from './frames.ts'
import { Relay } from './relay.ts'

const ping = Buffer.from('*1\r\n$4\r\nPING\r\n')

/** Returns an error reply as a server would send it. */
export function errorReply(words: string): string {
  return `-${words}\r\n`
}

/**
 * The test's choice of replies. The function gets the name of a command or of a script, in lower case, and returns the
 * reply. If it returns undefined, the proxy passes on the server's reply. If it returns 'none', the proxy sends nothing
 * more on this connection.
 */
export type Answers = (command: string) => string | undefined

export class RefusingProxy extends Relay {
  readonly #sockets = new Set<Socket>()
  #answers: Answers = () => undefined

  /** Sets the replies from now on, for present connections and for new ones. */
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
    /** For each command that is still unanswered, the reply to give; undefined stands for the server's own reply. */
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

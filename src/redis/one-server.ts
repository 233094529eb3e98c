/**
 * A single server, as the server of all messages.
 *
 * Its connection only listens, so it cannot detect that it is half-open. So while a waiter or a hold depends on
 * messages, the client sends a beat to its own inbox every few seconds: by the connection for commands. The beat is a
 * call of this connection, and its arrival is the answer. So if no beat arrives, the connection is given up and made
 * again, as any other that leaves a call unanswered.
 */
import type { Connection, ConnectionListener } from './connection.ts'
import { type MessageListener, readerFor } from './messages.ts'
import { isReply } from './refusals.ts'
import type { MessageServer, MessageServers, Subscriber } from './subscriber.ts'

export interface OneServerListener {
  readonly messages: MessageListener
  /** Messages no longer arrive, because the connection is gone. */
  onDown(error: Error): void
}

export class OneServer implements MessageServer, MessageServers {
  readonly #commands: Connection
  readonly #connection: Connection
  readonly #inbox: string
  readonly #subscriber: Subscriber
  /** The beat that has not arrived yet. */
  #beat: { arrived(): void; lost(error: Error): void } | undefined

  /** `inbox`: the channel to which the client is always subscribed. */
  constructor(
    commands: Connection,
    connect: (listener: ConnectionListener) => Connection,
    inbox: string,
    subscriber: Subscriber,
    { messages, onDown }: OneServerListener,
  ) {
    this.#commands = commands
    this.#inbox = inbox
    this.#subscriber = subscriber
    const connection = connect({
      onUp: () => subscriber.seek(),
      onDown: (error, brief) => {
        subscriber.lost(this)
        this.#beat?.lost(error)
        if (!brief) onDown(error)
      },
    })
    this.#connection = connection
    const read = readerFor(messages, () => this.#beat?.arrived())
    connection.redis.on('message', (channel: string, text: string) => {
      if (!connection.uplink.closed) read(channel, text)
    })
  }

  get up(): boolean {
    return this.#connection.up
  }

  serverOf(): OneServer {
    return this
  }

  async subscribe(channel: string): Promise<true> {
    await this.#connection.run(redis => redis.subscribe(channel))
    return true
  }

  unsubscribe(channel: string): void {
    if (this.up) this.#connection.redis.unsubscribe(channel).catch(() => {})
  }

  async probe(): Promise<true> {
    // An unanswered call shows the same, and shows also that nothing reaches the server: a beat would hide that.
    if (!this.#beat && this.#connection.lag === 0) await this.#connection.run(() => this.#send())
    return true
  }

  refresh(): void {}

  keepOnly(): void {}

  close(): void {}

  async #send(): Promise<void> {
    const [commands, inbox] = [this.#commands, this.#inbox]
    // The beat of a lost connection is sent again on the next one, where it could not arrive before the inbox.
    if (!this.#subscriber.isSubscribed(inbox)) return
    // Without an answer, the beat is sent again a moment later.
    if (!commands.up) throw new Error('the connection for commands is gone')
    const arrival = new Promise<void>((arrived, lost) => {
      this.#beat = { arrived, lost }
    })
    // A failed PUBLISH says nothing about whether messages arrive. If the server refuses it, no other will do.
    commands.redis.publish(inbox, 'beat').then(
      listeners => this.#counted(listeners),
      error => {
        if (isReply(error)) this.#beat?.arrived()
        else this.#beat?.lost(error)
      },
    )
    await arrival.finally(() => {
      this.#beat = undefined
    })
  }

  /**
   * `listeners`: how many subscribers received the beat on the server that executes the commands. If there is none, this
   * client's subscriber is connected to another server, for example to a former master that is now a replica.
   * Replication forwards beats to the replica, so the beats still arrive. But the scripts find no subscriber of this
   * client's inbox, and pass over its waiters.
   */
  #counted(listeners: number): void {
    this.#commands.arrived()
    if (listeners !== 0 || !this.#subscriber.isSubscribed(this.#inbox)) return
    const apart = 'the connection for messages and the one for commands lead to different servers'
    this.#connection.uplink.reset(new Error(`${apart}, so the client connects again`))
  }
}

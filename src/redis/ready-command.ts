/**
 * Sends requests through ioredis at half of its cost, as commands of its own class that are ready to be written.
 *
 * `redis.evalsha(…)` makes a command from a list of arguments, and for it two promises and four closures. A ready command
 * has its text already, and gives its reply to an object. Its prototype is a command of the very ioredis that the
 * connection uses. So whatever ioredis asks of a command (its slot in a cluster, its arguments for a log or a trace) is
 * answered as usual. If an ioredis makes no such commands, `readyCommands` returns undefined, and requests are sent by
 * `evalsha`.
 */
import type { Cluster, Command, Redis } from 'ioredis'

/** A request whose text is known, and which receives its reply. */
export interface Ready {
  /** The first key, which decides about the slot. */
  readonly key: string
  /** The whole command, as it is written to the socket. */
  readonly text: string
  /** The arguments after the name of the command, for logs, traces and errors. */
  readonly args: readonly string[]
  replied(reply: unknown): void
  refused(error: Error): void
}

/** Returns a function that sends requests as EVALSHA; undefined if this ioredis lacks what it needs. */
export function readyCommands(redis: Redis | Cluster): ((request: Ready) => void) | undefined {
  const pattern = commandOf(redis)
  if (!pattern) return undefined

  class ReadyCommand {
    readonly request: Ready
    isTraced = false
    protocol: number | undefined
    replyMapping: unknown
    /** Some tracing tools replace these two functions, and then call them without `this`. */
    readonly resolve: (reply: unknown) => void
    reject: (error: Error) => void

    constructor(request: Ready) {
      this.request = request
      this.resolve = reply => {
        // An error that is thrown here would break the parser, and later replies would go to other requests.
        try {
          request.replied((this as unknown as Command).transformReply(reply as Buffer))
        } catch (error) {
          process.nextTick(() => {
            throw error
          })
        }
      }
      this.reject = error => request.refused(error)
    }

    get args(): readonly string[] {
      return this.request.args
    }

    get keys(): string[] {
      return [this.request.key]
    }

    toWritable(): string {
      return this.request.text
    }
  }
  Object.setPrototypeOf(ReadyCommand.prototype, pattern)
  return request => void redis.sendCommand(new ReadyCommand(request) as unknown as Command)
}

/** Returns an EVALSHA that ioredis has made, and that is not sent; undefined if this cannot be done. */
function commandOf(redis: Redis | Cluster): Command | undefined {
  if (typeof redis.sendCommand !== 'function') return undefined
  let made: Partial<Command> | undefined
  const catching = Object.create(redis, {
    sendCommand: {
      value: (command: Command) => {
        made = command
        return Promise.resolve()
      },
    },
  })
  catching.evalsha('', 0)
  const fits = typeof made?.toWritable === 'function' && typeof made.transformReply === 'function'
  return fits ? (made as Command) : undefined
}

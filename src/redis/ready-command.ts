/**
 * Sends requests through ioredis at half of its cost, as commands of its own class that are ready to be written.
 *
 * `redis.evalsha(…)` makes a command from a list of arguments, and for it two promises and four closures. A ready command
 * has its text already, and gives its reply to an object. Its prototype is a command of the very ioredis that the
 * connection uses. So whatever ioredis asks of a command (its slot in a cluster, its arguments for a log or a trace) is
 * answered as usual. If an ioredis makes no such commands, `readyCommands` returns undefined, and requests are sent by
 * `evalsha`. So they are while a program traces the commands of ioredis, because a trace ends with the command's promise.
 */
import { channel } from 'node:diagnostics_channel'
import type { Cluster, Command, Redis } from 'ioredis'
import type { Request } from './request.ts'

const traces = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'].map(event =>
  channel(`tracing:ioredis:command:${event}`),
)

/** Whether a program traces the commands of ioredis. */
export function isTraced(): boolean {
  for (const { hasSubscribers } of traces) if (hasSubscribers) return true
  return false
}

/** A call whose text is known. */
interface Call {
  readonly request: Request<unknown>
}

/** Receives the replies. */
interface Receiver<C> {
  replied(call: C, reply: unknown): void
  refused(call: C, error: Error): void
}

/** Returns a function that sends calls as EVALSHA; undefined if this ioredis lacks what it needs. */
export function readyCommands<C extends Call>(
  redis: Redis | Cluster,
  receiver: Receiver<C>,
): ((call: C, text: string) => void) | undefined {
  const pattern = commandOf(redis)
  if (!pattern) return undefined

  class ReadyCommand {
    readonly call: C
    readonly text: string
    isTraced = false
    /** Otherwise, each command would have the promise of the pattern, which never settles. */
    readonly promise = undefined
    protocol: number | undefined
    replyMapping: unknown
    /** Some tracing tools replace this function, and then call it without `this`. */
    readonly resolve: (reply: unknown) => void

    constructor(call: C, text: string) {
      this.call = call
      this.text = text
      this.resolve = reply => {
        // An error that is thrown here would break the parser, and later replies would go to other requests.
        try {
          receiver.replied(call, (this as unknown as Command).transformReply(reply as Buffer))
        } catch (error) {
          process.nextTick(() => {
            throw error
          })
        }
      }
    }

    /** As `resolve`, but it is seldom needed, so it is made when it is. */
    get reject(): (error: Error) => void {
      return error => receiver.refused(this.call, error)
    }

    set reject(reject: (error: Error) => void) {
      Object.defineProperty(this, 'reject', { value: reject, writable: true })
    }

    get args(): readonly string[] {
      return this.call.request.args ?? []
    }

    get keys(): string[] {
      return [this.call.request.key ?? '']
    }

    toWritable(): string {
      return this.text
    }
  }
  Object.setPrototypeOf(ReadyCommand.prototype, pattern)
  return (call, text) => void redis.sendCommand(new ReadyCommand(call, text) as unknown as Command)
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

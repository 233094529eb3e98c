/** A Redis in memory. It has keys and commands, and runs Lua scripts. */
import { run } from './commands.ts'
import { Keyspace, type ServerClock } from './keyspace.ts'
import { lua, lua54, type Reply } from './lua.ts'
import { bytesOf, type CommandReply, textOf } from './values.ts'

/** Delivers a message, and returns the number of subscribers. */
export type Publish = (channel: string, text: string) => number

export class FakeRedis {
  readonly keys: Keyspace
  readonly #publish: Publish

  constructor(clock: ServerClock, publish: Publish) {
    this.keys = new Keyspace(clock)
    this.#publish = publish
  }

  /**
   * Runs a script, like EVAL. Throws an ErrorReply if the script returns an error, and a ScriptError if the script
   * fails.
   */
  eval(script: string, keys: readonly string[], argv: readonly string[], call = this.#call, by = lua): Reply {
    return by.run(script, keys.map(bytesOf), argv.map(bytesOf), call)
  }

  /**
   * Runs a script, and then checks that it does the same with Lua 5.4 as on Dragonfly: it has to call the same commands,
   * receives the same replies (but times and scores are numbers, not texts), and has to give the same reply.
   */
  evalTwice(script: string, keys: readonly string[], argv: readonly string[]): Reply {
    const calls: { words: string; reply: CommandReply | Error }[] = []
    const reply = this.eval(script, keys, argv, (name, args) => {
      const reply = outcome(() => this.#call(name, args))
      calls.push({ words: [name, ...args].join(' '), reply })
      return given(reply)
    })
    const same = (found: string, expected: string | undefined) => {
      if (found !== expected) throw new Error(`with Lua 5.4, ${found} instead of ${expected}: ${script}`)
    }
    const left = calls.values()
    const again = (name: string, args: string[]) => {
      const call = left.next().value
      same([name, ...args].join(' '), call?.words)
      return withNumbers(name, args, given(call!.reply))
    }
    same(texts(this.eval(script, keys, argv, again, lua54)), texts(reply))
    same(left.next().value?.words ?? 'no call', 'no call')
    return reply
  }

  readonly #call = (name: string, args: string[]): CommandReply => {
    if (name === 'PUBLISH') return this.#publish(textOf(args[0]!), textOf(args[1]!))
    return run(this.keys, name, args)
  }
}

function outcome(run: () => CommandReply): CommandReply | Error {
  try {
    return run()
  } catch (error) {
    return error as Error
  }
}

function given(reply: CommandReply | Error): CommandReply {
  if (reply instanceof Error) throw reply
  return reply
}

function withNumbers(name: string, args: readonly string[], reply: CommandReply): CommandReply {
  const scored = name === 'ZPOPMIN' || args.includes('WITHSCORES')
  if (Array.isArray(reply))
    return reply.map((item, i) => (name === 'TIME' || (scored && i % 2 === 1) ? Number(item) : item))
  return name === 'ZSCORE' && reply !== null ? Number(reply) : reply
}

/** Returns a reply as one text, in which a number is written like the same text. */
function texts(reply: Reply): string {
  return JSON.stringify(reply, (_, value) => (typeof value === 'number' ? String(value) : value))
}

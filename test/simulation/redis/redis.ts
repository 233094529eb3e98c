/** A Redis in memory. It has keys and commands, and runs Lua scripts. */
import { run } from './commands.ts'
import { Keyspace, type ServerClock } from './keyspace.ts'
import { lua, type Reply } from './lua.ts'
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
  eval(script: string, keys: readonly string[], argv: readonly string[]): Reply {
    return lua.run(script, keys.map(bytesOf), argv.map(bytesOf), this.#call)
  }

  readonly #call = (name: string, args: string[]): CommandReply => {
    if (name === 'PUBLISH') return this.#publish(textOf(args[0]!), textOf(args[1]!))
    return run(this.keys, name, args)
  }
}

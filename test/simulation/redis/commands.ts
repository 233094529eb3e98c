/**
 * The Redis commands that scripts may need: their effect on the keys, and their replies. If a script uses a command or
 * an option that is missing here, the command throws an error. This error is not an ErrorReply, so the script cannot
 * catch it.
 */
import type { Keyspace } from './keyspace.ts'
import { sortedSetCommands } from './sorted-set-commands.ts'
import { type CommandReply, ErrorReply, fits, integerOf, OK } from './values.ts'

export interface Command {
  /** The number of arguments. If `more` is set, the smallest number of arguments. */
  readonly takes: number
  readonly more?: boolean
  run(db: Keyspace, args: readonly string[]): CommandReply
}

const keyCommands: Record<string, Command> = {
  EXISTS: { takes: 1, more: true, run: (db, keys) => keys.filter(key => db.has(key)).length },

  DEL: { takes: 1, more: true, run: (db, keys) => keys.filter(key => db.delete(key)).length },

  UNLINK: { takes: 1, more: true, run: (db, keys) => keys.filter(key => db.delete(key)).length },

  PEXPIREAT: {
    takes: 2,
    run(db, [key, until]) {
      return db.letLiveUntil(key!, Number(integer(until!, 'value is not an integer or out of range'))) ? 1 : 0
    },
  },

  PEXPIRETIME: {
    takes: 1,
    run(db, [key]) {
      const until = db.livesUntil(key!)
      if (until === undefined) return -2
      return Number.isFinite(until) ? until : -1
    },
  },

  TIME: {
    takes: 0,
    run: ({ micros }) => [String(Math.floor(micros / 1_000_000)), String(micros % 1_000_000)],
  },

  GET: { takes: 1, run: (db, [key]) => db.text(key!) ?? null },

  SET: {
    takes: 2,
    run(db, [key, text]) {
      db.setText(key!, text!)
      return OK
    },
  },
}

const hashCommands: Record<string, Command> = {
  HSET: {
    takes: 3,
    more: true,
    run(db, [key, ...pairs]) {
      if (pairs.length % 2 === 1) throw new ErrorReply("ERR wrong number of arguments for 'hset' command")
      const hash = db.hashForWriting(key!)
      const before = hash.size
      for (let i = 0; i < pairs.length; i += 2) hash.set(pairs[i]!, pairs[i + 1]!)
      return hash.size - before
    },
  },

  HGET: { takes: 2, run: (db, [key, field]) => db.hash(key!)?.get(field!) ?? null },

  HMGET: {
    takes: 2,
    more: true,
    run(db, [key, ...fields]) {
      const hash = db.hash(key!)
      return fields.map(field => hash?.get(field) ?? null)
    },
  },

  HGETALL: { takes: 1, run: (db, [key]) => [...(db.hash(key!) ?? [])].flat() },

  HDEL: {
    takes: 2,
    more: true,
    run(db, [key, ...fields]) {
      const hash = db.hash(key!)
      const removed = fields.filter(field => hash?.delete(field)).length
      db.dropIfEmpty(key!)
      return removed
    },
  },

  HEXISTS: { takes: 2, run: (db, [key, field]) => (db.hash(key!)?.has(field!) ? 1 : 0) },

  HKEYS: { takes: 1, run: (db, [key]) => [...(db.hash(key!)?.keys() ?? [])] },

  HLEN: { takes: 1, run: (db, [key]) => db.hash(key!)?.size ?? 0 },

  HINCRBY: {
    takes: 3,
    run(db, [key, field, by]) {
      const added = integer(by!, 'value is not an integer or out of range')
      const sum = integer(db.hash(key!)?.get(field!) ?? '0', 'hash value is not an integer') + added
      if (!fits(sum)) throw new ErrorReply('ERR increment or decrement would overflow')
      db.hashForWriting(key!).set(field!, String(sum))
      return Number(sum)
    },
  },
}

export const commands: ReadonlyMap<string, Command> = new Map(
  Object.entries({ ...keyCommands, ...hashCommands, ...sortedSetCommands }),
)

export function run(db: Keyspace, name: string, args: readonly string[]): CommandReply {
  const command = commands.get(name.toUpperCase())
  if (!command) throw new Error(`test/simulation/redis/ has no command ${name}`)
  const { takes, more } = command
  if (args.length < takes || (!more && args.length > takes)) {
    throw new ErrorReply('ERR Wrong number of args calling Redis command from script')
  }
  return command.run(db, args)
}

function integer(text: string, otherwise: string): bigint {
  const number = integerOf(text)
  if (number === undefined) throw new ErrorReply(`ERR ${otherwise}`)
  return number
}

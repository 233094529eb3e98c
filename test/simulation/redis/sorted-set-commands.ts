/** The commands for sorted sets (ZSETs). */
import type { Command } from './commands.ts'
import type { Keyspace } from './keyspace.ts'
import { type Between, type Member, SortedSet } from './sorted-set.ts'
import { type CommandReply, ErrorReply, integerOf, scoreOf, written } from './values.ts'

export const sortedSetCommands: Record<string, Command> = {
  ZADD: { takes: 3, more: true, run: (db, [key, ...rest]) => add(db, key!, rest) },

  ZSCORE: {
    takes: 2,
    run(db, [key, member]) {
      const score = db.sortedSet(key!)?.score(member!)
      return score === undefined ? null : written(score)
    },
  },

  ZRANK: {
    takes: 2,
    run(db, [key, member]) {
      const rank = db.sortedSet(key!)?.rank(member!) ?? -1
      return rank < 0 ? null : rank
    },
  },

  ZCARD: { takes: 1, run: (db, [key]) => db.sortedSet(key!)?.size ?? 0 },

  ZCOUNT: {
    takes: 3,
    run(db, [key, min, max]) {
      const between = betweenOf(min!, max!)
      return db.sortedSet(key!)?.within(between).count ?? 0
    },
  },

  ZRANGE: {
    takes: 3,
    more: true,
    run: (db, [key, first, last, ...options]) => listed(ranked(db, key!, first!, last!), options),
  },

  ZREVRANGE: {
    takes: 3,
    more: true,
    run: (db, [key, first, last, ...options]) => listed(ranked(db, key!, first!, last!, true), options),
  },

  ZRANGEBYSCORE: {
    takes: 3,
    more: true,
    run(db, [key, min, max, ...options]) {
      const between = betweenOf(min!, max!)
      const limit = options.findIndex(option => option.toUpperCase() === 'LIMIT')
      const [, skipped, most] = limit < 0 ? ['', '0', '-1'] : options.splice(limit, 3)
      const [offset, count] = [integer(skipped ?? ''), integer(most ?? '')]
      const set = setOf(db, key!)
      const { start, count: within } = set.within(between)
      const found = offset < 0 ? [] : set.members.slice(start, start + within).slice(offset)
      return listed(count < 0 ? found : found.slice(0, count), options)
    },
  },

  ZREM: {
    takes: 2,
    more: true,
    run(db, [key, ...members]) {
      const set = db.sortedSet(key!)
      const removed = members.filter(member => set?.delete(member)).length
      db.dropIfEmpty(key!)
      return removed
    },
  },

  ZREMRANGEBYSCORE: {
    takes: 3,
    run(db, [key, min, max]) {
      const between = betweenOf(min!, max!)
      const { start, count } = setOf(db, key!).within(between)
      return remove(db, key!, start, count).length
    },
  },

  ZREMRANGEBYRANK: {
    takes: 3,
    run(db, [key, first, last]) {
      const [from, to] = [integer(first!), integer(last!)]
      const { start, end } = ranks(setOf(db, key!).size, from, to)
      return remove(db, key!, start, end - start).length
    },
  },

  ZPOPMIN: {
    takes: 1,
    more: true,
    run(db, [key, count = '1', ...rest]) {
      if (rest.length > 0) throw new ErrorReply('ERR syntax error')
      const most = integer(count)
      if (most < 0) throw new ErrorReply('ERR value is out of range, must be positive')
      return withScores(remove(db, key!, 0, most))
    },
  },
}

function add(db: Keyspace, key: string, rest: string[]): CommandReply {
  const first = rest.findIndex(word => !/^(nx|xx)$/i.test(word))
  const options = rest.slice(0, first < 0 ? rest.length : first).map(option => option.toUpperCase())
  const pairs = rest.slice(options.length)
  if (/^(gt|lt|ch|incr)$/i.test(pairs[0] ?? '')) throw new Error(`test/simulation/redis/ has no ZADD with ${pairs[0]}`)
  if (pairs.length === 0 || pairs.length % 2 === 1) throw new ErrorReply('ERR syntax error')
  const [nx, xx] = [options.includes('NX'), options.includes('XX')]
  if (nx && xx) throw new ErrorReply('ERR XX and NX options at the same time are not compatible')
  const scores = pairs.filter((_, i) => i % 2 === 0).map(score)
  const set = xx ? setOf(db, key) : db.sortedSetForWriting(key)
  let added = 0
  for (const [i, number] of scores.entries()) {
    const member = pairs[2 * i + 1]!
    const known = set.score(member) !== undefined
    if (known ? nx : xx) continue
    set.set(member, number)
    if (known) continue
    added += 1
    db.joined(key, member, number)
  }
  return added
}

/** Returns the set of a key, for reading; a missing key counts as an empty set. */
function setOf(db: Keyspace, key: string): SortedSet {
  return db.sortedSet(key) ?? new SortedSet()
}

function remove(db: Keyspace, key: string, start: number, count: number): Member[] {
  const removed = setOf(db, key).removeRanks(start, count)
  db.dropIfEmpty(key)
  return removed
}

/**
 * Returns the members in a range of ranks. `reverse`: rank 0 is the highest score, and the members are in descending
 * order.
 */
function ranked(db: Keyspace, key: string, first: string, last: string, reverse = false): readonly Member[] {
  const [from, to] = [integer(first), integer(last)]
  const { members } = setOf(db, key)
  const { start, end } = ranks(members.length, from, to)
  return (reverse ? members.toReversed() : members).slice(start, end)
}

/** Resolves a range of ranks; negative ranks count from the end. `end` is exclusive. */
function ranks(size: number, first: number, last: number): { start: number; end: number } {
  const fromStart = (rank: number) => (rank < 0 ? size + rank : rank)
  const start = Math.max(0, fromStart(first))
  return { start, end: Math.max(start, fromStart(last) + 1) }
}

function listed(members: readonly Member[], options: readonly string[]): CommandReply {
  if (options.length === 0) return members.map(({ member }) => member)
  if (options.length > 1 || options[0]!.toUpperCase() !== 'WITHSCORES') {
    throw new Error(`test/simulation/redis/ has no range with ${options.join(' ')}`)
  }
  return withScores(members)
}

function withScores(members: readonly Member[]): string[] {
  return members.flatMap(({ member, score: number }) => [member, written(number)])
}

function betweenOf(min: string, max: string): Between {
  const end = (text: string) => {
    const number = scoreOf(text.startsWith('(') ? text.slice(1) : text)
    if (number === undefined) throw new ErrorReply('ERR min or max is not a float')
    return number
  }
  return { min: end(min), max: end(max), aboveMin: min.startsWith('('), belowMax: max.startsWith('(') }
}

function score(text: string): number {
  const number = scoreOf(text)
  if (number === undefined) throw new ErrorReply('ERR value is not a valid float')
  return number
}

function integer(text: string): number {
  const number = integerOf(text)
  if (number === undefined) throw new ErrorReply('ERR value is not an integer or out of range')
  return Number(number)
}

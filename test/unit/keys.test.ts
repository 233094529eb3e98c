/** Tests that every key has its own names in Redis, whatever its text, and that a lock's names share a cluster slot. */
import calculateSlot from 'cluster-key-slot'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { mutex } from '../../src/kinds/mutex/mutex.ts'
import { Keys, lockOfChannel, Namespace, unlockChannel } from '../../src/redis/keys.ts'

/**
 * Pieces of keys that could be confused with parts of a lock's names in Redis: braces, and the endings of these names.
 */
const piece = fc.constantFrom(
  '{',
  '}',
  '{',
  '}',
  'a',
  'b',
  ':',
  ':q',
  ':d',
  '%',
  '3A',
  '25',
  ':lock',
  '{}',
  '{a}',
  '\n',
  'é',
  '\u{1f600}',
)
const odd = fc.array(piece, { minLength: 1, maxLength: 8 }).map(pieces => pieces.join(''))
const key = fc.oneof(
  { weight: 4, arbitrary: odd },
  { weight: 1, arbitrary: fc.string({ minLength: 1, unit: 'grapheme' }) },
)
const runs = { numRuns: 5_000 }

/** Returns the keys of a kind of lock. `name` is the kind's name, which is empty for the mutex. */
function keysOf(prefix: string, name = ''): Keys {
  return new Keys(new Namespace(`${prefix}:`, false), { ...mutex, name })
}

const standalone = keysOf('lock')
const cluster = new Keys(new Namespace('app:lock:', true), mutex)

function namesOf(keys: Keys, of: string): readonly string[] {
  return keys.of(of).all
}

test('no two keys share a name of a lock, a queue or expiries', () => {
  fc.assert(
    fc.property(key, key, (one, other) => {
      fc.pre(one !== other)
      const names = new Set(namesOf(standalone, one))
      expect(namesOf(standalone, other).filter(name => names.has(name))).toEqual([])
    }),
    runs,
  )
})

test('no two short strings share a name', () => {
  const letters = ['{', '}', 'a', ':lock', ':q']
  const owners = new Map<string, string>()
  const visit = (word: string, depth: number) => {
    if (word) {
      for (const name of namesOf(standalone, word)) {
        expect.soft(owners.get(name) ?? word, `${name} of ${word}`).toBe(word)
        owners.set(name, word)
      }
    }
    if (depth > 0) for (const letter of letters) visit(word + letter, depth - 1)
  }
  visit('', 6)
})

test('two clients with different prefixes share no lock, and do not list each other’s locks', () => {
  const prefix = fc.array(fc.constantFrom('lock', ':', 'x', '%', '3A'), { minLength: 1, maxLength: 5 })
  fc.assert(
    fc.property(prefix, prefix, key, key, (here, there, one, other) => {
      fc.pre(here.join('') !== there.join(''))
      const [ours, theirs] = [here, there].map(pieces => keysOf(pieces.join(''))) as [Keys, Keys]
      const names = new Set(namesOf(ours, one))
      expect(namesOf(theirs, other).filter(name => names.has(name))).toEqual([])
      expect(ours.keyOf(theirs.of(other).lock)).toBeUndefined()
    }),
    runs,
  )
  expect(keysOf('lock').of('x:{a}').lock).not.toBe(keysOf('lock:x').of('a').lock)
})

test('two kinds share no lock, whatever the prefixes of their clients, and do not list each other’s locks', () => {
  const words = fc.constantFrom('lock', ':', 'x', '%', '3A', '/', 'permit', 's', '%permit/')
  const prefix = fc.array(words, { minLength: 1, maxLength: 5 })
  const withSlash = fc.oneof(
    key,
    fc.tuple(words, key).map(pieces => pieces.join('')),
  )
  const kind = fc.constantFrom('', 'permit', 'permits', 's')
  fc.assert(
    fc.property(prefix, prefix, kind, kind, withSlash, withSlash, (here, there, its, other, one, two) => {
      fc.pre(its !== other)
      const [ours, theirs] = [keysOf(here.join(''), its), keysOf(there.join(''), other)]
      const names = new Set(namesOf(ours, one))
      expect(namesOf(theirs, two).filter(name => names.has(name))).toEqual([])
      expect(ours.keyOf(theirs.of(two).lock)).toBeUndefined()
      expect(ours.keyOf(ours.of(one).lock)).toBe(one)
    }),
    runs,
  )
  expect(keysOf('lock', 'permits').of('order:1').lock).toBe('lock:%permits/{order:1}')
})

test('the names of one lock differ', () => {
  fc.assert(
    fc.property(key, of => {
      expect(new Set(namesOf(standalone, of)).size).toBe(3)
    }),
    runs,
  )
})

test('all names and channels of a lock share a cluster slot', () => {
  fc.assert(
    fc.property(key, of => {
      const { lock } = cluster.of(of)
      const names = [...namesOf(cluster, of), unlockChannel(lock), `${cluster.inboxPrefix(lock)}abcdefghijkl`]
      expect(new Set(names.map(name => calculateSlot(name))).size).toBe(1)
    }),
    runs,
  )
})

test('a key with its own hash tag is in the slot of that tag, and other keys are spread by their whole text', () => {
  expect(calculateSlot(standalone.of('{user}:order').lock)).toBe(calculateSlot('user'))
  expect(calculateSlot(standalone.of('order:1').lock)).toBe(calculateSlot('order:1'))
})

test('the key of a name is the key that the name was made from', () => {
  fc.assert(
    fc.property(key, of => {
      for (const keys of [standalone, cluster]) expect(keys.keyOf(keys.of(of).lock)).toBe(of)
    }),
    runs,
  )
})

test('a name that is not a lock’s has no key; if it has one, it is that key’s name', () => {
  fc.assert(
    fc.property(key, name => {
      const [, queue, deadlines] = standalone.of(name).all as [string, string, string]
      expect([standalone.keyOf(queue), standalone.keyOf(deadlines)]).toEqual([undefined, undefined])
      const found = standalone.keyOf(`lock:${name}`)
      if (found !== undefined) expect(standalone.of(found).lock).toBe(`lock:${name}`)
    }),
    runs,
  )
})

test('the lock of an unlock channel is the lock that the channel was made for', () => {
  fc.assert(
    fc.property(key, of => {
      const { lock } = standalone.of(of)
      expect(lockOfChannel(unlockChannel(lock))).toBe(lock)
    }),
    runs,
  )
})

describe('the names in the documentation', () => {
  test.each([
    ['order:1', 'lock:{order:1}'],
    ['{user}:order', 'lock:{user}:order'],
  ])('%s', (of, lock) => {
    expect(standalone.of(of).all).toEqual([lock, `${lock}:q`, `${lock}:d`])
  })

  test('begin with keyPrefix and prefix, keys and channels alike', () => {
    const { lock } = cluster.of('order')
    expect(lock).toBe('app:lock:{order}')
    expect(cluster.inboxPrefix(lock).startsWith('app:lock:')).toBe(true)
    expect(standalone.inboxPrefix('').startsWith('lock:')).toBe(true)
  })
})

/** Compares the names of options that are accepted with those that the installed ioredis 5 and 6 declare and read. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { addressNames, optionNames } from '../../src/redis/ioredis-options.ts'

const packages = new URL('../../node_modules/', import.meta.url)
const sorted = (names: readonly string[]) => [...new Set(names)].sort()

/** Returns the text of a file of ioredis, below `built`. */
const textOf = (ioredis: string, file: string) =>
  readFileSync(fileURLToPath(new URL(`${ioredis}/built/${file}`, packages)), 'utf8')

/** Returns what the group of the pattern matches. */
const found = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, name]) => name as string)

/** Returns the members of an interface. */
function membersOf(ioredis: string, file: string, name: string): string[] {
  const [, body = ''] = new RegExp(`interface ${name} .*\\{([^]*?)\n\\}`).exec(textOf(ioredis, file)) ?? []
  const members = found(body, /^ {4}(\w+)\??: /gm)
  expect(members, `${file} has ${name}`).not.toEqual([])
  return members
}

const connectors = 'connectors/StandaloneConnector'

/** Returns the members of `RedisOptions`. Some of them are picked from the options of a socket. */
function declared(ioredis: string): string[] {
  const standalone = textOf(ioredis, `${connectors}.d.ts`)
  return [
    ...membersOf(ioredis, 'redis/RedisOptions.d.ts', 'CommonRedisOptions'),
    ...membersOf(ioredis, 'utils/Commander.d.ts', 'CommanderOptions'),
    ...membersOf(ioredis, 'connectors/SentinelConnector/index.d.ts', 'SentinelConnectionOptions'),
    ...found(standalone, /^ {4}(\w+)\?: /gm),
    ...found(standalone, /Pick<\w+, ([^>]*)>/g).flatMap(names => found(names, /"(\w+)"/g)),
  ]
}

test('the options that ioredis 5 or 6 declares are accepted, and no others', () => {
  expect(sorted(optionNames)).toEqual(sorted(['ioredis', 'ioredis-5'].flatMap(declared)))
})

describe.each(['ioredis', 'ioredis-5'])('of %s', ioredis => {
  test('every option that its code reads is accepted', () => {
    const files = ['Redis', 'redis/event_handler', connectors, 'connectors/SentinelConnector/index']
    const text = files.map(file => textOf(ioredis, `${file}.js`)).join('\n')
    const names = sorted(found(text, /\b(?:this|self|redis)\.options\.(\w+)/g))
    expect(names).toEqual(expect.arrayContaining(['db', 'tls', 'sentinelPassword', 'reconnectOnError']))
    expect(names.filter(name => !optionNames.includes(name))).toEqual([])
  })

  test('the parts of a sentinel’s address are accepted', () => {
    expect(sorted(addressNames)).toEqual(
      sorted(membersOf(ioredis, 'connectors/SentinelConnector/types.d.ts', 'SentinelAddress')),
    )
  })
})

/**
 * Tests what `baton` answers to the completion scripts of shells. test/program/terminal tests the scripts themselves.
 */
import { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { nextOf } from '../../../cli/completion/next.ts'
import { withConnection } from '../../../cli/connection.ts'
import { addInspect } from '../../../cli/inspect.ts'
import { addRun } from '../../../cli/run.ts'
import { client, freshKey } from '../../kit/redis.ts'
import { baton, start } from './baton.ts'

const program = withConnection(new Command('baton'))
addRun(program)
addInspect(program)
program.command('hidden', { hidden: true }).option('--json <file>', 'a file')

const next = (...words: string[]) => {
  const answer = nextOf(program, words)
  return answer.kind === 'words' ? answer.words.map(({ value }) => value) : answer
}

describe('what may come next', () => {
  test.each([
    [[''], ['run', 'inspect', 'help']],
    [['in'], ['inspect']],
    [['hid'], []],
    [['nosuch', ''], []],
    [['help', 'r'], ['run']],
    [
      ['run', '--f'],
      ['--fair', '--fair-after'],
    ],
    [
      ['run', '--max'],
      ['--max-hold', '--max-waiters'],
    ],
    [['--u'], ['--url']],
    [['--prefix', ''], []],
    [['--url', 'u', 'in'], ['inspect']],
    [['--url', 'u', '--prefix=p', 'inspect', 'a'], { kind: 'keys', beginning: 'a', prefix: 'p', urls: ['u'] }],
    [['--url', 'u', 'run', '--url', 'v', '--url=w', ''], { kind: 'keys', beginning: '', urls: ['v', 'w'] }],
    [
      ['run', 'key', '--l'],
      ['--lease', '--label'],
    ],
    [['run', '--timeout', ''], []],
    [['run', 'key', ''], ['--']],
    [['run', '--fair', 'key', '--timeout', '3s', ''], ['--']],
    [['run', 'key', '--', ''], { kind: 'command' }],
    [['run', 'key', '--', 'ls', '-'], { kind: 'command' }],
    [['hidden', '--json', 'x'], { kind: 'files' }],
    [['inspect', 'a'], { kind: 'keys', beginning: 'a' }],
    [['run', ''], { kind: 'keys', beginning: '' }],
    [['run', 'a', '--and', 'b'], { kind: 'keys', beginning: 'b' }],
    [['run', 'a', '--and', 'b', ''], ['--']],
    [['run', 'a', '--permits', ''], []],
    [
      ['inspect', 'a', '--kind', ''],
      ['mutex', 'readWrite', 'semaphore'],
    ],
    [['inspect', 'a\\ b\\'], { kind: 'keys', beginning: 'a b' }],
    [['inspect', 'key', ''], []],
    [['inspect', '--prefix', 'p', '--url=u', ''], { kind: 'keys', beginning: '', prefix: 'p', urls: ['u'] }],
    [['inspect', '--prefix', '"a b"', `'a\\ b"c`], { kind: 'keys', beginning: 'a bc', prefix: 'a b' }],
  ])('%j', (words, expected) => {
    expect(next(...words)).toEqual(expected)
  })
})

describe('the names of locks', () => {
  test('with the prefix that is given before the command', async () => {
    const [prefix, key] = [freshKey('prefix'), freshKey()]
    await client({ prefix, label: 'me' }).lock(key)
    const { output } = await baton('__complete', '--', '--prefix', prefix, 'inspect', '')
    expect(output).toBe(`words\n${key}\theld by me\n`)
  })

  test('that literally begin with the word, with their holders', async () => {
    const name = freshKey('a*b')
    await client({ label: 'somebody' }).lock(`${name}:1`)
    await client().lock(name.replace('*', 'x'))
    const { output } = await baton('__complete', '--', 'inspect', name)
    expect(output).toBe(`words\n${name}:1\theld by somebody\n`)
  })

  test('except those that could not be typed, or would move the cursor', async () => {
    const name = freshKey()
    const locks = client({ label: 'l\u001b[2J\tx' })
    for (const odd of ['\n', '\t', '\u001b[2J', '\u202e', '']) await locks.lock(name + odd)
    const { output } = await baton('__complete', '--', 'release', name)
    expect(output).toBe(`words\n${name}\theld by l\\u{1b}[2J\\u{9}x\n`)
  })

  test('none, and no error, if Redis is unreachable', async () => {
    const silently = { code: 0, output: 'words\n', errors: '' }
    expect(await start(['__complete', '--', 'inspect', ''], { REDIS_URL: 'redis://127.0.0.1:1' }).ended).toEqual(
      silently,
    )
    expect(await start(['__complete', '--', 'inspect', ''], { REDIS_URL: 'nonsense' }).ended).toEqual(silently)
  })
})

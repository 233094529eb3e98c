/**
 * Each thing has one name everywhere. These tests search comments, messages and documentation for words that are not to
 * be used. Names in the code are not checked.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { commented, commentsIn } from '../../scripts/words/comments.ts'
import { messagesIn } from '../../scripts/words/messages-in.ts'
import { pageNames, root } from './page.ts'

/** Words that are not used, and the words that are used instead. */
const instead: readonly [word: RegExp, ours: string][] = [
  [/\bwatchdogs?\b/gi, 'automatic renewal'],
  [/\brefresh(?:es|ed|ing)?\b/gi, 'renew, tend'],
  [/\bexten(?:d|ds|ded|ding|sions?)\b/gi, 'renew'],
  [/\bidentifiers?\b/gi, 'id'],
  [/\bcb\b/gi, 'function, listener'],
  [/\bmgr\b/gi, 'say what it does'],
  [/\butils?\b/gi, 'say what is in it'],
]

/** Exceptions from the list `instead`: a file, a word that is right in this file, and the reason. */
const exceptions: readonly [file: string, word: string, why: string][] = [
  ['src/redis/shards.ts', 'refresh', 'an event of ioredis'],
  ['docs/migrating.md', 'refresh', 'how redis-semaphore renews'],
  ['docs/migrating.md', 'identifier', 'an option and a property of redis-semaphore'],
  ['docs/migrating.md', 'extend', 'the call of redlock, which is replaced'],
  ['docs/migrating.md', 'extended', 'what happens in redlock'],
  ['docs/migrating.md', 'extensions', 'a property of @sesamecare-oss/redlock'],
  ['docs/migrating.md', 'watchdog', "how Redisson's and node-redisson's locks are renewed"],
  ['docs/benchmarks.md', 'watchdog', "how node-redisson's locks are renewed"],
]

interface Line {
  readonly file: string
  readonly line: number
  readonly text: string
}

/** Finds the words that the list `instead` rules out. Returns a message for each, which says what to write instead. */
function wrongIn(lines: readonly Line[]): string[] {
  return lines.flatMap(line =>
    found(line)
      .filter(({ word }) => !exceptions.some(([file, excused]) => file === line.file && excused === word.toLowerCase()))
      .map(({ word, ours }) => `${line.file}:${line.line}: "${word}", say: ${ours}`),
  )
}

function found({ text }: Line): { word: string; ours: string }[] {
  return instead.flatMap(([word, ours]) => [...text.matchAll(word)].map(([match]) => ({ word: match, ours })))
}

function linesOf(file: string, text: string, from = 1): Line[] {
  return text.split('\n').map((each, i) => ({ file, line: from + i, text: each }))
}

/** Returns the text of a source file that is checked: the comments and messages. */
function wordsOf(file: string, text: string): Line[] {
  const comments = commentsIn(file, text).flatMap(({ line, text: words }) => linesOf(file, words, line))
  return file.endsWith('.ts') ? [...comments, ...messagesIn(file, text)] : comments
}

function allLines(): Line[] {
  const pages = pageNames().filter(name => /^(?:docs|lua)\/|^(?:README|CONTRIBUTING)/.test(name))
  const read = (file: string) => readFileSync(new URL(file, root), 'utf8')
  return [...pages.flatMap(file => linesOf(file, read(file))), ...sources().flatMap(file => wordsOf(file, read(file)))]
}

function sources(): string[] {
  return ['src', 'cli', 'lua'].flatMap(folder => {
    const names = readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' })
    return names.filter(name => commented.test(name) && !name.includes('generated')).map(name => `${folder}/${name}`)
  })
}

const lines = allLines()

test('no word is a second name for something that has one', () => {
  expect(new Set(lines.map(({ file }) => file)).size).toBeGreaterThan(200)
  expect(wrongIn(lines)).toEqual([])
})

test.each(exceptions)('the exception is needed: %s, %s', (file, excused) => {
  const words = lines.filter(line => line.file === file).flatMap(found)
  expect(words.map(({ word }) => word.toLowerCase())).toContain(excused)
})

test('such words are found in comments of TypeScript and Lua and in messages, and nowhere else', () => {
  const code = [
    'class Longer extends Shorter {', // A word in the code itself is allowed.
    '  #refresh = util(external) // the watchdog',
    "  why = new LockLostError(key, 'its identifier is unknown')",
    '}',
  ]
  expect(wrongIn(wordsOf('src/made-up.ts', code.join('\n')))).toEqual([
    'src/made-up.ts:2: "watchdog", say: automatic renewal',
    'src/made-up.ts:3: "identifier", say: id',
  ])
  expect(wrongIn(wordsOf('lua/made-up.lua', 'local cb = 1 -- Extends the lease.'))).toEqual([
    'lua/made-up.lua:1: "Extends", say: renew',
  ])
})

test('a text that is part of a message is shown in the message', () => {
  const code = [
    "const titles = ['lease ends in', 'fencing token']",
    'function reasonOf(error: Error): string {',
    "  return late ? 'no answer arrived in time' : error.message",
    '}',
    "const place = position ? `, at position \u0024{position}` : ''",
    'throw new Failure(`Redis cannot be used: \u0024{reasonOf(error)}\u0024{place}`, exitCodes.unavailable)',
    "const lines = ['The first line is here.', ...all.map(one => `  and one for \u0024{one}`)]",
    "console.log(lines.map(printable).join('\\n'))",
  ]
  const texts = messagesIn('cli/made-up.ts', code.join('\n')).map(({ line, kind, text }) => [line, kind, text])
  expect(texts).toEqual([
    [3, 'error', 'Redis cannot be used: no answer arrived in time[, at position \u0024{position}]'],
    [6, 'error', 'Redis cannot be used: \u0024{reasonOf(error)}[, at position \u0024{position}]'],
    [8, 'line', 'The first line is here.\n  and one for \u0024{one}'],
  ])
})

test('a comment is shown with the function, class or test that it is in', () => {
  const within = (file: string, code: string[]) => commentsIn(file, code.join('\n')).map(comment => comment.within)
  expect(
    within('src/made-up.ts', [
      '/** Describes the class. */',
      'export class Queue {',
      '  /** Describes the method. */',
      '  async join(',
      '    key: string,',
      '  ) {',
      '    all.forEach(one => {',
      '      // Is in the method.',
      '    })',
      '  }',
      '}',
      "test.each(all)('the queue keeps its order', () => {",
      '  // Is in the test.',
      '})',
    ]),
  ).toEqual([undefined, 'export class Queue {', 'async join(', "test.each(all)('the queue keeps its order', () => {"])
  const lua = [
    'local function wake(key)',
    '  if key then',
    '    -- Is in the function.',
    '  end',
    'end',
    '-- Is in none.',
  ]
  expect(within('lua/made-up.lua', lua)).toEqual(['local function wake(key)', undefined])
})

/** docs/servers.md says what the refusals of servers mean. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { meaningOf, meanings } from '../../src/redis/refusals.ts'

const page = readFileSync(new URL('../../docs/servers.md', import.meta.url), 'utf8')
const rows = [...page.matchAll(/^\| (`[A-Z].*?`) \| ([a-z ]+) \|/gm)]
const refusals = rows.flatMap(([, texts = '', meaning]) =>
  [...texts.matchAll(/`([^`]+)`/g)].map(([, text]) => [text as string, meaning] as const),
)

test.each(refusals)('%s: %s', (text, meaning) => {
  expect(meaningOf(new Error(text))).toBe(meaning)
  const inScript = `ERR Error running script (call to f_0123456789abcdef): @user_script:1: @user_script: 1: -${text}`
  expect(meaningOf(new Error(inScript))).toBe(meaning)
})

test('the page has every refusal that is not final, and the words of other errors mean nothing', () => {
  const unnamed = Object.keys(meanings).filter(known => !refusals.some(([text]) => text.includes(known)))
  expect(unnamed).toEqual([])
  for (const text of ['BUSYGROUP x', 'ERR LOADING', "NOPERM no access to 'READONLY'"]) {
    expect(meaningOf(new Error(text))).toBe('final')
  }
})

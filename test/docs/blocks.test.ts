/**
 * Checks the types of every code block in the documentation, and runs the block, as docs/testing.md describes. Errors
 * have the line numbers of the page.
 */
import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { elsewhere, notRun, typesOnly } from './declared.ts'
import { type Results, runAll } from './harness.ts'
import { pageNames, parsePage, readPage, root } from './page.ts'
import { matches } from './printed.ts'
import { commandOf, programsOf } from './program.ts'

/** A page with mistakes. The tests have to find all of them. */
const wrong = parsePage('test/docs/wrong.md', readFileSync(new URL('wrong.md', import.meta.url), 'utf8'))
const pages = pageNames().map(readPage)
const programs = new Map([...pages, wrong].map(page => [page, programsOf(page)]))

let results: Results
beforeAll(async () => {
  results = await runAll([...programs.values()].flat())
}, 250_000)

describe.each(pages.filter(page => programs.get(page)!.length > 0))('$name', page => {
  const own = programs.get(page)!

  test.each(own)('$title', program => {
    expect(results.of.get(program!)?.problems).toEqual([])
  })

  const shown = page.blocks.filter(({ prints }) => prints)
  test.each(shown)('line $line shows the real output', block => {
    const before = page.blocks[page.blocks.indexOf(block) - 1]
    const program = own.find(({ blocks }) => before !== undefined && blocks.includes(before))
    const { output } = results.of.get(program!)!
    expect(matches(block.text, output), `it printed:\n${output}`).toBe(true)
  })
})

test('the globals of every block have their types', () => {
  expect(results.aboutScene).toEqual([])
})

describe('blocks that are not run', () => {
  const texts = (name: string) => pages.find(page => page.name === name)?.blocks.map(({ text }) => text) ?? []

  test.each([...typesOnly, ...notRun])('the block that begins with $begins still exists', ({ page, begins }) => {
    expect(texts(page).filter(text => text.startsWith(begins))).toHaveLength(1)
  })

  test.each(elsewhere)('$file runs $command', ({ command, file, texts: wanted }) => {
    const lines = pages.flatMap(({ name }) => texts(name).flatMap(text => text.split('\n')))
    expect(lines.map(commandOf)).toContain(command)
    const other = readFileSync(new URL(file, root), 'utf8')
    for (const text of wanted) expect(other).toContain(text)
  })

  test('no page has code in a block of text, which is only shown', () => {
    for (const { name, blocks } of pages) {
      for (const { text, language, line } of blocks) {
        if (language === 'text') expect(text, `${name}:${line}`).not.toMatch(/^(import|const|await|SELECT|baton) /m)
      }
    }
  })
})

describe('mistakes are found', () => {
  const found = [
    ['a wrong type', /^test\/docs\/wrong\.md\(6,7\): error TS2322/],
    ['an exception', /Error: thrown[\s\S]*test\/docs\/wrong\.md:12/],
    ['a check that fails', /AssertionError[\s\S]*test\/docs\/wrong\.md:21/],
    ['an unhandled rejection', /Error: unheard/],
    ['a command that fails', /exit code 127: .*wrong\.md: 33: .*nosuchcommand/],
    ['json', /SyntaxError/],
    ['yaml', /./],
    ['a language that nothing runs', /nothing runs what begins at line 45/],
    ['no language', /nothing runs what begins at line 48/],
    ['code whose check fails', /AssertionError/],
    ['a continuation in another language', /of the shell and something else/],
  ] as const

  test.each(found.map(([what, problem], index) => ({ what, problem, index })))('$what', ({ problem, index }) => {
    const program = programs.get(wrong)![index]
    expect(results.of.get(program!)?.problems).toEqual([expect.stringMatching(problem)])
  })

  test('each mistake has its block', () => {
    expect(programs.get(wrong)).toHaveLength(found.length)
  })

  test('a hidden comment without a meaning or without a block', () => {
    expect(() => parsePage('page', '<!-- chekc: 1 -->')).toThrow('page:1: no such comment here: chekc')
    expect(() => parsePage('page', '<!-- check: 1 -->')).toThrow('page:1: no such comment here: check')
    expect(() => parsePage('page', '<!-- with: 1 -->')).toThrow('page: no block follows')
  })

  test('output that differs from the output on the page', () => {
    const printed = 'k is held by web-1:4711\n  held for       1m 12.5s\n\n1  web-2:12  3s\nend'
    expect(matches('k is held by web-7:1\n  held for 3ms', printed)).toBe(true)
    expect(matches('k is held by …\n…\n1 web-2:3 1h 2m', printed)).toBe(true)
    expect(matches('k is held by db-1:4711', printed)).toBe(false)
    expect(matches('k is held by web-1:4711\n1 web-2:3 3s', printed)).toBe(false)
    expect(matches('  held for', printed)).toBe(false)
    expect(matches('(k) is held by web-1:4711', printed)).toBe(false)
  })
})

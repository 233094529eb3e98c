/**
 * Checks the comments that say which change of the code makes a test fail: the parser reads them as intended, and the
 * lines that they quote exist.
 */
import { describe, expect, test } from 'vitest'
import { breaksIn, troubleOf, unbroken } from '../../../scripts/breaks/comments.ts'
import { folders, guardedIn } from '../../../scripts/breaks/guarded.ts'

describe.each(folders.flatMap(guardedIn))('$file', ({ breaks, text }) => {
  test('each line to break exists exactly once', () => {
    expect(breaks.flatMap(each => troubleOf(each)?.concat(`, line ${each.line}`) ?? [])).toEqual([])
  })

  test('each test says which line to break', () => {
    expect(unbroken(text)).toEqual([])
  })
})

describe('a comment', () => {
  const read = (...lines: string[]) => breaksIn('a.test.ts', lines.join('\n'))
  const change = { path: 'src/a.ts', from: 'a > b', to: 'a >= b' }

  test('names a line, and its replacement; it may span several lines', () => {
    const expected = [{ file: 'a.test.ts', line: 3, changes: [change] }]
    expect(
      read('// This test fails if `a > b` becomes', '// `a >= b` in src/a.ts: too late.', "test('x', () => {"),
    ).toEqual(expected)
  })

  test('may remove a line, break several lines together, or name alternative breaks', () => {
    const text =
      '  // It is so. This test fails if `a > b` becomes `a >= b` in src/a.ts and `c()` is removed in lua/c.lua: late. ' +
      'It also fails if `d` is removed in src/d.ts.'
    expect(read(text, "  test('x', () => {").map(({ changes }) => changes)).toEqual([
      [change, { path: 'lua/c.lua', from: 'c()', to: '' }],
      [{ path: 'src/d.ts', from: 'd', to: '' }],
    ])
  })

  test('belongs to the test below it, whose title may come after a table', () => {
    const text = [
      '// This test fails if `d` is removed in src/d.ts.',
      'test.each([',
      "  ['a', 1],",
      "])('%s', () => {",
      "test('y', () => {",
    ]
    expect(read(...text).map(({ line }) => line)).toEqual([4])
    expect(
      read("test('y', () => {", '// This test fails if `d` is removed in src/d.ts.', '', "test('z', () => {"),
    ).toEqual([])
  })

  test('is reported if it names no line, or a line that does not exist exactly once', () => {
    const at = (...words: string[]) =>
      read(`// This test fails if ${words.join(' ')}`, "test('x', () => {").map(each => troubleOf(each))
    expect(at('something else.')).toEqual(['names no change'])
    expect(at('`no such line` is removed in src/clock.ts')).toEqual(['src/clock.ts has "no such line" 0 times'])
    expect(at('`e` becomes `f` in src/clock.ts')).toEqual([
      expect.stringMatching(/^src\/clock.ts has "e" \d\d+ times$/),
    ])
  })

  test('above a group applies to all tests of the group', () => {
    const group = ["describe('g', () => {", "  test('x', () => {", '  })', '})', "test('y', () => {"]
    expect(unbroken(group.join('\n'))).toEqual([2, 5])
    expect(unbroken(['// These tests fail if `d` is removed in src/d.ts.', ...group].join('\n'))).toEqual([6])
  })
})

/** Tests that untrusted text has no effect on a terminal. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { printable, printableJson } from '../../../cli/printable.ts'

/** Characters that a terminal might interpret: controls, formats, line ends, and lone surrogates. */
const dangerous = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u
const anyText = fc.string({ unit: 'binary' })

describe('printable', () => {
  test.each([
    ['an escape sequence', '\u001b[2J', '\\u{1b}[2J'],
    ['the same in eight bits', '\u009b2J', '\\u{9b}2J'],
    ['line ends', 'a\r\nb\u2028c', 'a\\u{d}\\u{a}b\\u{2028}c'],
    ['a change of direction', 'a\u202eb', 'a\\u{202e}b'],
    ['letters without width', 'a\u200bb\u3164', 'a\\u{200b}b\\u{3164}'],
    ['a mark of annotations', 'a\ufff9b', 'a\\u{fff9}b'],
    ['half a character', 'a\ud83d', 'a\\u{d83d}'],
    ['accents piled up', `e${'\u0301'.repeat(5)}`, 'e\u0301\u0301\u0301\\u{301}\\u{301}'],
  ])('makes %s visible', (_, text, shown) => {
    expect(printable(text)).toBe(shown)
  })

  test.each(['order:17', 'Größe', '注文', '🔒', 'शक्ति', 'é'])('leaves %s unchanged', text => {
    expect(printable(text)).toBe(text)
  })

  test('nothing dangerous is left of any text', () => {
    fc.assert(fc.property(anyText, text => !dangerous.test(printable(text))))
  })
})

describe('printableJson', () => {
  test('means the same to a program', () => {
    fc.assert(
      fc.property(fc.dictionary(anyText, anyText), value => {
        expect(JSON.parse(printableJson(value))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })

  test('contains nothing dangerous', () => {
    fc.assert(fc.property(anyText, text => !dangerous.test(printableJson([text]))))
  })
})

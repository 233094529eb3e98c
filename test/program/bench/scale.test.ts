import { expect, test } from 'vitest'
import { marks, present, read, written } from '../../../scripts/scale-page/main.ts'
import { parts } from '../../../scripts/scale-page/parts.ts'

test('the figures of docs/scale.md are those of the raw run', () => {
  // If this fails, run: npx tsx scripts/scale-page/main.ts
  expect(present()).toBe(written())
})

test('every part is on the page, once', () => {
  expect(marks().sort()).toEqual(Object.keys(parts).sort())
})

test('a computed figure follows the run', () => {
  const scale = read()
  const dearer = {
    ...scale,
    held: { ...scale.held, renewing: { client: scale.held.renewing.client, server: 2 * scale.held.renewing.server } },
  }
  const row = (text: string) =>
    /^\| a held lock more, of many .*$/m
      .exec(text)![0]
      .split('|')
      .map(cell => cell.trim())
  const figure = (cell: string) => Number(cell.replaceAll(',', ''))
  const [before, after] = [row(parts['limits']!(scale)), row(parts['limits']!(dearer))]
  expect(figure(after[2]!) / figure(before[2]!)).toBeCloseTo(0.5, 1)
  expect(after[3]).toBe(before[3])
})

test('a mark without a text is refused', () => {
  expect(() => written(read(), '<!-- scale, nothing -->\n<!-- end -->')).toThrow("'nothing'")
})

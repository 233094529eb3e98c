/**
 * Parses comments that say which line of code a test guards. Above a test, or a group of tests, there is
 *
 *     // This test fails if `a > b` becomes `a >= b` in src/key/key.ts: what goes wrong then.
 *
 * If a comment says "is removed" instead of "becomes …", the quoted code is deleted. Each quotation occurs exactly once
 * in its file. Several changes in one sentence are made together. Each further "It also fails if" is tried separately.
 */
import { readFileSync } from 'node:fs'

export const root = new URL('../../', import.meta.url)

export interface Change {
  /** The file's path, relative to the project's root. */
  readonly path: string
  readonly from: string
  readonly to: string
}

export interface Break {
  readonly file: string
  /** The line on which the test or the group begins, as the test runner counts it. */
  readonly line: number
  readonly changes: readonly Change[]
}

/** A test or group in the text of a file, with the comment above it. */
interface Place {
  readonly line: number
  readonly indent: number
  readonly group: boolean
  readonly comment: string
}

const opening = /^( *)(test|describe)(?:\.\w+)?\(/
/**
 * Matches the line with a test's title. This is the first line of the call. If the test has a table of parameters over
 * several lines, it is the last line of the table.
 */
const titled = /(?:^ *(?:test|describe)(?:\.\w+\(.*\))?|^ *\]\))\((?:['"`]|$)/
const commented = /^ *\/\/ ?(.*)$/
const change = /`([^`]+)` (?:becomes `([^`]*)`|is removed) in ((?:[\w-]+\/)+[\w.-]+\.(?:ts|lua))/g
const beginning = /\b(?:This test fails|These tests fail|(?:It|They) also fails?) if /

function placesIn(text: string): Place[] {
  const lines = text.split('\n')
  return lines.flatMap((line, at) => {
    const [, indent, word] = opening.exec(line) ?? []
    if (indent === undefined) return []
    const title = lines.findIndex((later, i) => i >= at && titled.test(later))
    const above: string[] = []
    for (let i = at - 1; i >= 0; i--) {
      const [, words] = commented.exec(lines[i]!) ?? []
      if (words === undefined) break
      above.unshift(words)
    }
    return { line: title + 1, indent: indent.length, group: word === 'describe', comment: above.join(' ') }
  })
}

/** Returns the breaks that are described in the comments of a test file. */
export function breaksIn(file: string, text: string): Break[] {
  return placesIn(text).flatMap(({ line, comment }) =>
    comment
      .split(beginning)
      .slice(1)
      .map(words => ({ file, line, changes: changesIn(words) })),
  )
}

function changesIn(words: string): Change[] {
  return [...words.matchAll(change)].map(([, from, to = '', path]) => ({ path: path!, from: from!, to }))
}

/**
 * Returns the lines of tests without a comment that says which code they guard, neither above the test nor above its
 * group.
 */
export function unbroken(text: string): number[] {
  const groups: Place[] = []
  return placesIn(text).flatMap(place => {
    while (groups.length > 0 && groups.at(-1)!.indent >= place.indent) groups.pop()
    if (place.group) groups.push(place)
    if (place.group || [...groups, place].some(({ comment }) => beginning.test(comment))) return []
    return place.line
  })
}

/** Returns why a break cannot be made; undefined if it can. */
export function troubleOf({ changes }: Break): string | undefined {
  if (changes.length === 0) return 'names no change'
  for (const { path, from } of changes) {
    const times = readFileSync(new URL(path, root), 'utf8').split(from).length - 1
    if (times !== 1) return `${path} has "${from}" ${times} times`
  }
  return undefined
}

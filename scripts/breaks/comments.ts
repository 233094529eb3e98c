/**
 * What the comments of tests say about the lines that they guard. Above a test, or a group of tests, stands
 *
 *     // Break: `a > b` to `a >= b` in src/local/line.ts: what can be seen then.
 *
 * and the test has to fail once `a > b` has become `a >= b`. Each quotation occurs exactly once in its file. Instead of "to …"
 * it may say "away". Several changes before the colon are made together; a further "Break" is another way to fail.
 */
import { readFileSync } from 'node:fs'

/** Of the project. */
export const root = new URL('../../', import.meta.url)

export interface Change {
  /** From the root of the project. */
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

/** A test or group in the text of a file, and the comment above it. */
interface Place {
  readonly line: number
  readonly indent: number
  readonly group: boolean
  readonly comment: string
}

const opening = /^( *)(test|describe)(?:\.\w+)?\(/
/** The call that gets the title stands on a later line, where a table is longer than one. */
const titled = /(?:^ *(?:test|describe)(?:\.\w+\(.*\))?|^ *\]\))\((?:['"`]|$)/
const commented = /^ *\/\/ ?(.*)$/
const change = /`([^`]+)` (?:to `([^`]*)`|away) in ((?:[\w-]+\/)+[\w.-]+\.(?:ts|lua))/g

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

/** The breaks that the comments of a test file name. */
export function breaksIn(file: string, text: string): Break[] {
  return placesIn(text).flatMap(({ line, comment }) =>
    comment
      .split(/\bBreak: /)
      .slice(1)
      .map(words => ({ file, line, changes: changesIn(words) })),
  )
}

function changesIn(words: string): Change[] {
  return [...words.matchAll(change)].map(([, from, to = '', path]) => ({ path: path!, from: from!, to }))
}

/** The lines of tests that neither have a break nor stand in a group that has one. */
export function unbroken(text: string): number[] {
  const groups: Place[] = []
  return placesIn(text).flatMap(place => {
    while (groups.length > 0 && groups.at(-1)!.indent >= place.indent) groups.pop()
    if (place.group) groups.push(place)
    if (place.group || [...groups, place].some(({ comment }) => comment.includes('Break: '))) return []
    return place.line
  })
}

/** What is wrong with a break: nothing, if it can be made. */
export function troubleOf({ changes }: Break): string | undefined {
  if (changes.length === 0) return 'names no change'
  for (const { path, from } of changes) {
    const times = readFileSync(new URL(path, root), 'utf8').split(from).length - 1
    if (times !== 1) return `${path} has "${from}" ${times} times`
  }
  return undefined
}

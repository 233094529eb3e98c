/**
 * Redis's own patterns over the users' keys: `*`, `?`, `[abc]`, `[^a-c]`, and `\` before what is meant literally.
 *
 * A pattern comes from outside, and so do the keys, so the time for a match has a bound: the length of the pattern times
 * that of the key. When a step fails, only the last `*` takes one character more. Earlier ones never have to: whatever a
 * longer run of theirs could reach, the last one reaches from where it stands. (A regular expression tries all of them.)
 *
 * As in Redis, a set that is not closed ends with the pattern. Three things are as people expect them instead: `?` is one
 * character, not one byte; a `-` right before `]` stands for itself; and a range from a later to an earlier character is refused.
 */
import { LockArgumentError } from '../errors.ts'

/** What a pattern is made of: an escaped character, a set, a wildcard, any other character. */
const part = /\\(.)|\[(\^?)((?:\\.|[^\]])*)(?:\]|$)|([*?])|(.)/gsu
/** The same of a set. */
const member = /\\(.)|(.)-(.)|(.)/gsu

/** Whether a character will do; undefined: any number of any characters. */
type Step = ((character: string) => boolean) | undefined

/** @throws LockArgumentError when the pattern is wrong */
export function glob(pattern: string): (text: string) => boolean {
  const steps = [...pattern.matchAll(part)].map(([, escaped, not, set, wild, plain]): Step => {
    if (wild) return wild === '*' ? undefined : () => true
    if (set === undefined) return character => character === (escaped ?? plain)
    const ranges = rangesOf(set, pattern)
    return character => ranges.some(([from, to]) => from <= character && character <= to) === !not
  })
  return text => matches(steps, [...text])
}

function rangesOf(set: string, pattern: string): (readonly [string, string])[] {
  return [...set.matchAll(member)].map(([, escaped, from = escaped, to, single]) => {
    const [first, last] = [from ?? single!, to ?? from ?? single!]
    if (first > last) throw new LockArgumentError('pattern', pattern, 'a pattern of *, ?, [abc], [^abc] and [a-c]')
    return [first, last]
  })
}

function matches(steps: readonly Step[], text: readonly string[]): boolean {
  let [step, at] = [0, 0]
  /** Behind the last `*`, and where in the text its run ends so far. */
  let afterRun = -1
  let end = 0
  while (at < text.length) {
    if (step < steps.length && !steps[step]) {
      afterRun = ++step
      end = at
    } else if (steps[step]?.(text[at]!)) {
      step++
      at++
    } else if (afterRun >= 0) {
      step = afterRun
      at = ++end
    } else {
      return false
    }
  }
  return steps.slice(step).every(rest => !rest)
}

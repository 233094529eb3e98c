/**
 * Matches users' keys with Redis's own patterns: `*`, `?`, `[abc]`, `[^a-c]`, and `\` before a character that is meant
 * literally.
 *
 * Patterns and keys come from outside, so the time for a match is bounded by the length of the pattern times the length
 * of the key. When a step fails, only the last `*` takes one more character. An earlier `*` need not: any text that it
 * could reach with a longer run, the last `*` can reach from its own position. (A regular expression would try both.)
 *
 * As in Redis, a set without "]" ends with the pattern. Three things differ from Redis, because people expect them: `?`
 * is one character, not one byte; a `-` right before `]` is a literal; and a range from a later to an earlier character
 * is refused.
 */
import { LockArgumentError } from '../errors.ts'

/** Splits a pattern into escaped characters, sets, wildcards and other characters. */
const part = /\\(.)|\[(\^?)((?:\\.|[^\]])*)(?:\]|$)|([*?])|(.)/gsu
/** Splits a set into its members. */
const member = /\\(.)|(.)-(.)|(.)/gsu

/** Tests whether a character matches this step; undefined: a `*`, which matches any characters. */
type Step = ((character: string) => boolean) | undefined

/**
 * Compiles a pattern to a function that tests whether a text matches.
 * @throws LockArgumentError when the pattern is wrong
 */
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
    if (first > last)
      throw new LockArgumentError(
        'pattern',
        pattern,
        'a pattern of *, ?, [abc], [^abc] and [a-c]; a range begins with its lower character',
      )
    return [first, last]
  })
}

function matches(steps: readonly Step[], text: readonly string[]): boolean {
  let [step, at] = [0, 0]
  /** `afterRun`: the step after the last `*`. `end`: where the text that this `*` matches ends, so far. */
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

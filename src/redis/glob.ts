/**
 * Matches users' keys with Redis's own patterns: `*`, `?`, `[abc]`, `[^a-c]`, and `\` before a character that is meant
 * literally.
 *
 * Patterns and keys may come from an attacker, so the number of comparisons is limited: at most the length of the
 * pattern times the length of the key. When a character does not match, only the last `*` is tried again, and matches
 * one more character than before. An earlier `*` need not be tried again, because the last `*` can itself match the
 * additional characters. A regular expression would try every `*` again.
 *
 * As in Redis, a set without "]" goes on to the end of the pattern. Three rules differ from those of Redis, because
 * people expect them. `?` is one character, not one byte. A `-` right before `]` is a literal. A range from a later to
 * an earlier character is refused.
 */
import { LockArgumentError } from '../errors.ts'

/**
 * Splits a pattern into escaped characters, sets, wildcards and other characters. As in Redis, a `\` that ends a range
 * escapes nothing: in `[*-\]`, the `]` ends the set.
 */
const part = /\\(.)|\[(\^?)((?:\\.|[^\]]-[^\]]|[^\]])*)(?:\]|$)|([*?])|(.)/gsu
/** Splits the inside of a `[…]` into characters and ranges. */
const member = /\\(.)|(.)-(.)|(.)/gsu

/** One step of a pattern: a test for one character. Undefined: a `*`, which matches any number of characters. */
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
  /**
   * `afterRun`: the index of the step after the last `*` that has been reached, or -1 if no `*` has been reached.
   * `end`: the index in the text right after the characters that this `*` matches.
   */
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

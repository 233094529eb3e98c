/** Spans of time, and operations on them. */
import { lowerBound } from './lists.ts'

export interface Span {
  readonly from: number
  readonly to: number
}

/** Returns the spans in order, with overlapping and touching spans merged. */
export function merged(spans: readonly Span[]): Span[] {
  const list: { from: number; to: number }[] = []
  for (const { from, to } of [...spans].sort((a, b) => a.from - b.from)) {
    const last = list.at(-1)
    if (last && from <= last.to) last.to = Math.max(last.to, to)
    else list.push({ from, to })
  }
  return list
}

/** Whether any of the merged spans overlaps the time from `from` to `to`. */
export function overlaps(spans: readonly Span[], from: number, to: number): boolean {
  const first = spans[lowerBound(spans, from, span => span.to)]
  return first !== undefined && first.from <= to
}

/** Returns how many ms between `from` and `to` the merged spans cover. */
export function covered(spans: readonly Span[], from: number, to: number): number {
  let sum = 0
  for (let i = lowerBound(spans, from, span => span.to); i < spans.length; i++) {
    const { from: begin, to: end } = spans[i] as Span
    if (begin >= to) break
    sum += Math.min(end, to) - Math.max(begin, from)
  }
  return sum
}

/** Returns the times at which at least `count` of the lists have a span. Overlapping spans of one list count once. */
export function atLeast(count: number, lists: Iterable<readonly Span[]>): Span[] {
  const turns = [...lists].flatMap(spans =>
    merged(spans).flatMap(({ from, to }) => [
      { t: from, step: 1 },
      { t: to, step: -1 },
    ]),
  )
  // At the same moment, beginnings come before ends, because a span includes its end.
  turns.sort((a, b) => a.t - b.t || b.step - a.step)
  const spans: Span[] = []
  let together = 0
  let from: number | undefined
  for (const { t, step } of turns) {
    together += step
    if (together >= count) from ??= t
    else if (from !== undefined) {
      spans.push({ from, to: t })
      from = undefined
    }
  }
  return spans
}

/**
 * The most common plot. Each rival has a row with its name, a drawing on a shared axis, and figures:
 *
 *      redis-baton    ───●──│─────────│──────    93 µs
 *      floor          ─●────│─────────│──────    70 µs
 *                         100 µs    1 ms
 *
 * The name is beside the drawing, so nobody has to match colours with a legend. The colour distinguishes
 * redis-baton, floors and rivals, but position and name alone are enough to tell them apart. A ring instead of a dot
 * marks a rival that promises no order.
 */
import { area, curveStepAfter } from 'd3-shape'
import type { Distribution } from '../contract.ts'
import type { RivalEntry, Spread } from './entries.ts'
import { type Markup, markup } from './html-markup.ts'
import { type Axis, axisFor, linear, percent } from './plot-axis.ts'

export interface Row {
  readonly rival: RivalEntry
  /** The value of `Rounds.mark`, which is shown beside the name. */
  readonly mark: string | undefined
  readonly drawing: Markup | undefined
  /** What the drawing shows, in words. */
  readonly words: string
  /** The figures in the columns beside the drawing. `Plot.heads` has the titles of these columns. */
  readonly cells: readonly string[]
}

interface Plot {
  readonly title: string
  readonly description: string
  readonly heads: readonly string[]
  readonly axis: Axis
  readonly axisTitle: string
  readonly height?: 'tall' | 'middle'
  readonly rows: readonly Row[]
}

export const kindOf = ({ kind, fair }: RivalEntry): string => `${kind}${fair ? ' fair' : ''}`

export function rowsPlot({ title, description, heads, axis, axisTitle, height, rows }: Plot): Markup {
  const grid = axis.ticks.map(
    ({ at }) => markup`<line class="grid" x1="${percent(at)}" x2="${percent(at)}" y1="0" y2="100%"/>`,
  )
  const labels = axis.ticks.map(({ at, text }) => markup`<text x="${percent(at)}" y="14">${text}</text>`)
  return markup`<figure class="plot ${height}${heads.length > 1 && ' many'}" style="--cells: ${heads.length}">
<figcaption><h4>${title}</h4><p>${description}</p></figcaption>
<div class="row head" aria-hidden="true"><span class="name"></span><span></span>${heads.map(head => markup`<span class="cell">${head}</span>`)}</div>
${rows.map(
  ({
    rival,
    mark,
    drawing,
    words,
    cells,
  }) => markup`<div class="row ${kindOf(rival)}"><span class="name">${rival.name}${mark && markup`<small>${mark}</small>`}</span>
<svg role="img"><title>${rival.name}${mark && `, ${mark}`}: ${words}</title>${grid}${drawing}</svg>
${cells.map((cell, i) => markup`<span class="cell"><small>${heads[i]} </small>${cell}</span>`)}</div>
`,
)}<div class="row axis" aria-hidden="true"><span class="name"></span><svg>${labels}</svg></div>
<div class="row axis-title"><span class="name"></span><span>${axisTitle}${axis.log && ' (logarithmic)'}</span></div>
</figure>`
}

/**
 * Draws a dot at the median of `spread`, a bar from its minimum to its maximum, and a short stroke at the median of
 * `second`.
 */
export function dots(spread: Spread, axis: Axis, second?: Spread): Markup {
  const [x, low, high] = [spread.median, spread.low, spread.high].map(value => percent(axis.at(value)))
  const at = second && percent(axis.at(second.median))
  return markup`<line class="range" x1="${low}" x2="${high}" y1="50%" y2="50%"/>${
    at !== undefined && markup`<line class="second" x1="${at}" x2="${at}" y1="20%" y2="80%"/>`
  }<circle class="mark" cx="${x}" cy="50%" r="5"/>`
}

/** Stretches a drawing of 1000 × 100 units to the plot's size. */
function stretched(drawing: Markup): Markup {
  return markup`<svg width="100%" height="100%" viewBox="0 0 1000 100" preserveAspectRatio="none">${drawing}</svg>`
}

/** Makes a logarithmic axis that fits all of these distributions. */
export function axisOf(distributions: readonly Distribution[], write: (value: number) => string): Axis {
  const ends = distributions.flatMap(({ low, step, counts }) => [
    low * step ** counts.findIndex(count => count > 0),
    low * step ** (counts.findLastIndex(count => count > 0) + 1),
  ])
  return axisFor(ends, write, 'log')
}

/**
 * Draws the buckets as a stepped hill, scaled so that its peak fills the row, and a vertical line at each of `strokes`.
 */
export function hill(
  { low, step, counts }: Distribution,
  axis: Axis,
  strokes: readonly (number | undefined)[],
): Markup {
  const [first, last] = [counts.findIndex(count => count > 0), counts.findLastIndex(count => count > 0)]
  const peak = counts.reduce((most, count) => Math.max(most, count), 0)
  const points = counts.slice(first, last + 1).map((count, i) => [first + i, count] as const)
  const draw = area<readonly [number, number]>(
    ([bucket]) => axis.at(low * step ** bucket) * 10,
    100,
    ([, count]) => 100 - (92 * count) / peak,
  )
  const shape = draw.curve(curveStepAfter).digits(1)([...points, [last + 1, 0]]) ?? ''
  return markup`${stretched(markup`<path class="hill" d="${shape}"/>`)}${strokes.map((value, i) => {
    if (value === undefined) return undefined
    const at = percent(axis.at(value))
    return markup`<line class="stroke s${i}" x1="${at}" x2="${at}" y1="${['8%', '50%', '68%'][i]}" y2="100%"/>`
  })}`
}

/** An axis for the time of a trial, from 0 % to 100 %. */
export const tenths: Axis = linear([0, 100], value => `${value} %`, 4)

/**
 * Draws a line with one point per tenth of the trial. The value 0 is at the bottom of the row. The value 1 is near the
 * top, where a dotted line is drawn.
 */
export function course(values: readonly number[]): Markup {
  const x = (i: number) => tenths.at(((i + 0.5) * 100) / values.length) * 10
  const draw = area<number>(
    (_, i) => x(i),
    100,
    value => 100 - 88 * value,
  ).digits(1)
  return stretched(markup`<path class="ideal" d="M${x(0)},12H${x(values.length - 1)}"/>
<path class="hill" d="${draw(values) ?? ''}"/><path class="course" d="${draw.lineY1()(values) ?? ''}"/>`)
}

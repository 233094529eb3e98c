/**
 * A small panel for each rival, all with the same axes. The rival's own line is strong, and the lines of all others are
 * faint behind it. In a single plot, a dozen crossing lines could not be distinguished.
 */
import { line } from 'd3-shape'
import type { RivalEntry } from './entries.ts'
import { type Markup, markup } from './html-markup.ts'
import { type Axis, percent } from './plot-axis.ts'
import { kindOf } from './plot-rows.ts'

export type Point = readonly [x: number, y: number | undefined]

export interface Series {
  readonly rival: RivalEntry
  /** Text beside the name. It lists the points that cover fewer rounds than the run has. */
  readonly mark: string | undefined
  /** A point without y was not measured. The line has a gap at such a point. */
  readonly points: readonly Point[]
  /** A description of the points, for readers who cannot see the drawing. */
  readonly words: string
}

interface Panels {
  readonly title: string
  readonly description: string
  readonly x: Axis
  readonly y: Axis
  readonly axisTitle: string
  readonly series: readonly Series[]
}

export function panelsPlot({ title, description, x, y, axisTitle, series }: Panels): Markup {
  const up = (value: number) => 100 - y.at(value)
  const draw = line<Point>(
    point => x.at(point[0]) * 10,
    point => up(point[1] ?? 0),
  )
    .defined(point => point[1] !== undefined)
    .digits(1)
  const behind = series.map(({ points }) => draw(points) ?? '').join('')
  const heights = y.ticks.map(({ at, text }) => ({ y: percent(100 - at), text }))

  const panel = ({ rival, mark, points, words }: Series) => markup`<div class="panel ${kindOf(rival)}">
<p class="name">${rival.name}${mark && markup`<small>${mark}</small>`}</p>
<div class="chart"><div class="y" aria-hidden="true"><svg>${heights.map(({ y, text }) => markup`<text x="100%" y="${y}" dy="4">${text}</text>`)}</svg></div>
<svg class="field" role="img"><title>${rival.name}${mark && `, ${mark}`}: ${words}</title>
${heights.map(({ y }) => markup`<line class="grid" x1="0" x2="100%" y1="${y}" y2="${y}"/>`)}
<svg width="100%" height="100%" viewBox="0 0 1000 100" preserveAspectRatio="none"><path class="ghost" d="${behind}"/><path class="course" d="${draw(points) ?? ''}"/></svg>
${points.map(([at, value]) => value !== undefined && markup`<circle class="mark" cx="${percent(x.at(at))}" cy="${percent(up(value))}" r="3.5"/>`)}
</svg><span></span><svg class="x" aria-hidden="true">${x.ticks.map(({ at, text }) => markup`<text x="${percent(at)}" y="13">${text}</text>`)}</svg></div>
</div>
`
  return markup`<figure class="panels"><figcaption><h4>${title}</h4><p>${description}</p></figcaption>
<div class="tiles">${series.map(panel)}</div>
<p class="axis-title">${axisTitle}</p></figure>`
}

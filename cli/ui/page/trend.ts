/**
 * Shows the chart of waits over the last minutes. The server has computed the lines, and this module puts them into the
 * page.
 */
import { inside, say } from './dom.ts'
import type { TrendLines } from './messages.ts'

export function drawTrend(figure: Element, { longest, median, top, area, line, middle }: TrendLines): void {
  say(inside(figure, '.longest b'), longest)
  say(inside(figure, 'span.middle b'), median)
  say(inside(figure, '.top'), top)
  for (const [name, path] of [
    ['area', area],
    ['line', line],
    ['middle', middle],
  ] as const) {
    inside<SVGPathElement>(figure, `path.${name}`).setAttribute('d', path)
  }
}

/**
 * Draws the picture of README.md: the longest wait and the throughput of the fair lock, beside two locks whose waiters
 * poll. The picture is as wide as a phone, so that its text is readable there.
 */
import type { Results } from '../contract.ts'
import { scenarios } from '../scenarios.ts'
import { entriesOf } from './entries.ts'

const scenario = scenarios.find(({ name }) => name === '2x8-hold5')!
const setting = '16 callers of one lock, 5 ms of work each'
const locks = [
  ['baton-fair', 'redis-baton (fair)'],
  ['redis-semaphore', 'redis-semaphore'],
  ['redlock-10ms', 'redlock (10 ms)'],
] as const
const panels = [
  { title: 'Longest wait, ms (less is better)', short: 'Longest wait in ms', measure: 'waitMax' },
  { title: 'Locks a second (more is better)', short: 'Locks a second', measure: 'throughput' },
] as const

/** Returns each panel with its bars. */
function measured(results: Results) {
  const entries = entriesOf(results, scenario)
  return panels.map(panel => {
    const bars = locks.map(([lock, name]) => {
      const figure = entries.find(({ rival }) => rival.name === lock)!.spread(panel.measure)!.median
      return { name, figure, text: Math.round(figure).toLocaleString('en') }
    })
    return { ...panel, bars }
  })
}

/** Says in one line what the picture shows. */
export function alternative(results: Results): string {
  const parts = measured(results).map(
    ({ short, bars }) => `${short}: ${bars.map(({ name, text }) => `${name} ${text}`).join(', ')}.`,
  )
  return [`${setting}.`, ...parts].join(' ')
}

export function picture(results: Results): string {
  const drawn = measured(results).map(({ title, bars }, index) => {
    const [top, most] = [40 + index * 116, Math.max(...bars.map(({ figure }) => figure))]
    const rows = bars.map(({ name, figure, text }, i) => {
      const [y, width] = [top + 24 + i * 26, Math.max(2, Math.round((150 * figure) / most))]
      return `<text x="140" y="${y + 14}" text-anchor="end">${name}</text>
<rect x="148" y="${y}" width="${width}" height="20" rx="2" fill="${i === 0 ? '#3451b2' : '#8c959f'}"/>
<text x="${154 + width}" y="${y + 14}">${text}</text>`
    })
    return `<g fill="#1f2328">
<text x="12" y="${top + 14}" font-weight="600">${title}</text>
${rows.join('\n')}
</g>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" width="360" height="262" viewBox="0 0 360 262" role="img" font-family="system-ui, sans-serif" font-size="13">
<title>${alternative(results)}</title>
<rect width="360" height="262" rx="8" fill="#fff"/>
<text x="12" y="22" font-size="12" fill="#57606a">${setting}</text>
${drawn.join('\n')}
</svg>
`
}

/**
 * Draws the picture of README.md: the longest wait and the throughput of the fair lock, beside two locks whose waiters
 * poll. The picture is as wide as a phone, so that its text is readable there.
 */
import type { Measure, Results } from '../../benchmarks/contract.ts'
import { median } from '../../benchmarks/report/goal.ts'
import { roundsOf } from '../../benchmarks/report/rounds.ts'
import type { ScenarioName } from '../../benchmarks/scenarios.ts'

const scenario: ScenarioName = '2x8-hold5'
const setting = '16 callers of one lock, 5 ms of work each'
const locks = {
  'baton-fair': 'redis-baton (fair)',
  'redis-semaphore': 'redis-semaphore',
  'redlock-10ms': 'redlock (10 ms)',
} as const
const panels = [
  { title: 'Longest wait, ms (less is better)', short: 'Longest wait in ms', measure: 'waitMax' },
  { title: 'Locks a second (more is better)', short: 'Locks a second', measure: 'throughput' },
] as const

interface Bar {
  readonly name: string
  readonly figure: number
}

function bars(results: Results, measure: Measure): Bar[] {
  return Object.entries(locks).map(([rival, name]) => {
    const trials = results.trials.filter(trial => trial.rival === rival && trial.scenario === scenario)
    const figures = roundsOf(trials, results.options.rounds).measured.map(trial => trial.figures[measure])
    return { name, figure: median(figures.filter(figure => figure !== undefined)) }
  })
}

function text(figure: number): string {
  return Math.round(figure).toLocaleString('en')
}

/** Says in one line what the picture shows. */
export function alternative(results: Results): string {
  const parts = panels.map(({ short, measure }) => {
    const figures = bars(results, measure).map(({ name, figure }) => `${name} ${text(figure)}`)
    return `${short}: ${figures.join(', ')}.`
  })
  return [`${setting}.`, ...parts].join(' ')
}

/** px, of a picture that is 360 px wide. */
const left = 148
const longest = 150
const row = 26

export function picture(results: Results): string {
  const drawn = panels.map(({ title, measure }, index) => panel(title, bars(results, measure), 40 + index * 116))
  return `<svg xmlns="http://www.w3.org/2000/svg" width="360" height="262" viewBox="0 0 360 262" role="img" font-family="system-ui, sans-serif" font-size="13">
<title>${alternative(results)}</title>
<rect width="360" height="262" rx="8" fill="#fff"/>
<text x="12" y="22" font-size="12" fill="#57606a">${setting}</text>
${drawn.join('\n')}
</svg>
`
}

function panel(title: string, bars: readonly Bar[], top: number): string {
  const most = Math.max(...bars.map(({ figure }) => figure))
  const rows = bars.map(({ name, figure }, index) => {
    const y = top + 24 + index * row
    const width = Math.max(2, Math.round((longest * figure) / most))
    const colour = index === 0 ? '#3451b2' : '#8c959f'
    return `<text x="${left - 8}" y="${y + 14}" text-anchor="end">${name}</text>
<rect x="${left}" y="${y}" width="${width}" height="20" rx="2" fill="${colour}"/>
<text x="${left + width + 6}" y="${y + 14}">${text(figure)}</text>`
  })
  return `<g fill="#1f2328">
<text x="12" y="${top + 14}" font-weight="600">${title}</text>
${rows.join('\n')}
</g>`
}

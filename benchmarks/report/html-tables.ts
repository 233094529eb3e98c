/** Shows all figures as tables. The tables also serve people who cannot see the plots. */
import { type Attainment, type Measure, measures, type Results, type Scenario } from '../contract.ts'
import { headlinesOf } from './columns.ts'
import { type Entry, entriesOf, type Spread } from './entries.ts'
import { type Markup, markup } from './html-markup.ts'
import { capital, format, words } from './html-measures.ts'
import { kindOf } from './plot-rows.ts'
import { subjectOf } from './subject.ts'

export function tableOf(scenario: Scenario, entries: readonly Entry[], rounds: number): Markup {
  // The number of acquisitions comes last: it explains the other figures, and is not meant for comparison.
  const columns = [...measures.filter(measure => measure !== 'acquisitions'), 'acquisitions' as const].filter(measure =>
    entries.some(entry => entry.spread(measure)),
  )
  const body = entries.map(entry => {
    const { rival, measured, mark } = entry
    const name = markup`<th scope="row"><span>${rival.name}</span>${mark && markup`<small>${mark}</small>`}</th>`
    const why = entry.shortcomings.join('; ')
    if (measured.length === 0) {
      return markup`<tr class="${kindOf(rival)} absent">${name}<td colspan="${Math.max(1, columns.length)}"><p>${why}</p></td></tr>\n`
    }
    const cells = columns.map(measure => cell(measure, entry.spread(measure)))
    const note =
      why !== '' &&
      markup`<tr class="absent"><td></td><td colspan="${columns.length}"><p>${rival.name}: ${why}</p></td></tr>`
    return markup`<tr class="${kindOf(rival)}">${name}${cells}</tr>${note}\n`
  })
  const busiest = Math.max(0, ...entries.flatMap(({ trials }) => trials.map(({ busy }) => busy ?? 0)))
  return markup`<div class="scroll" tabindex="0" role="region" aria-label="All figures: ${scenario.title}"><table>
<caption><span>${capital(scenario.title)}: medians${rounds > 1 && ` of ${rounds} rounds, with the minimum and maximum`}.${
    busiest >= 0.05 && ` During a measurement, other programs used up to ${format('share', busiest)} of the cores.`
  }</span></caption>
<thead><tr><th scope="col">Lock</th>${columns.map(measure => markup`<th scope="col">${words[measure].title}</th>`)}</tr></thead>
<tbody>
${body}</tbody></table></div>`
}

function cell(measure: Measure, spread: Spread | undefined): Markup {
  if (!spread) return markup`<td><span class="none">–</span></td>`
  const { unit, alarm } = words[measure]
  const [median, low, high] = [spread.median, spread.low, spread.high].map(value => format(unit, value))
  // If a count is the same in all rounds, its range is omitted.
  const range = spread.rounds > 1 && low !== high && markup`<small>${low} – ${high}</small>`
  if (alarm && spread.high > 0) return markup`<td class="alarm"><strong>! ${median}</strong>${range}</td>`
  return markup`<td>${median}${range}</td>`
}

/**
 * Compares the best lock of redis-baton, the best rival and the best floor in each scenario. In a loop, an unfair lock
 * can have better figures than a fair one, so Jain's fairness index is shown beside the figures of loops.
 */
export function glance(results: Results): Markup {
  const rows = results.scenarios.flatMap((scenario, i) => {
    const entries = entriesOf(results, scenario)
    const isLoop = subjectOf(scenario) === 'loop'
    return headlinesOf(scenario, entries).map(measure => {
      const best = (kind: Entry['rival']['kind']) => winner(entries, kind, measure, isLoop)
      return markup`<tr><th scope="row"><a href="#scenario-${i}">${capital(scenario.title)}</a><small>${words[measure].title}</small></th>
${best('baton')}${best('rival')}${best('floor')}</tr>`
    })
  })
  return markup`<div class="scroll" tabindex="0" role="region" aria-label="At a glance"><table class="glance">
<caption><span>Medians of the rounds. If Jain’s index of a lock is below about 0.9, a few waiters got the lock much more often than the others, and the lock’s figures describe mostly these few.</span></caption>
<thead><tr><th scope="col">Scenario</th><th scope="col">Best redis-baton</th><th scope="col">Best rival</th><th scope="col">Best floor</th></tr></thead>
<tbody>${rows}</tbody></table></div>`
}

function winner(entries: readonly Entry[], kind: Entry['rival']['kind'], measure: Measure, shared: boolean): Markup {
  const sign = measure === 'throughput' ? -1 : 1
  const found = entries
    .flatMap(entry => (entry.rival.kind === kind ? [{ entry, spread: entry.spread(measure) }] : []))
    .filter((each): each is { entry: Entry; spread: Spread } => each.spread !== undefined)
    .sort((a, b) => sign * (a.spread.median - b.spread.median))[0]
  if (!found) return markup`<td><span class="none">–</span></td>`
  const jain = shared ? found.entry.spread('jain') : undefined
  const fairness = jain && `, Jain’s index ${format('index', jain.median)}`
  const { rival, mark } = found.entry
  return markup`<td class="${kind}">${format(words[measure].unit, found.spread.median)}<small>${rival.name}${fairness}${mark && `, ${mark}`}</small></td>`
}

export function goalsTable(goals: readonly Attainment[]): Markup {
  const rows = goals.map(
    ({
      what,
      goal,
      measured,
      verdict,
    }) => markup`<tr><th scope="row"><span>${what.replaceAll('`', '')}</span></th><td>${goal}</td><td>${measured}</td>
${verdict === 'missed' ? markup`<td class="alarm"><strong>missed</strong></td>` : markup`<td>${verdict}</td>`}</tr>\n`,
  )
  return markup`<div class="scroll" tabindex="0" role="region" aria-label="Goals"><table>
<caption><span>The project’s goals for redis-baton. Each figure is the median of the rounds, with the range in parentheses. A ratio (÷) compares measurements of the same round. 2 × 8 means 2 processes with 8 waiters each.</span></caption>
<thead><tr><th scope="col">Measure</th><th scope="col">Goal</th><th scope="col">Measured</th><th scope="col">Verdict</th></tr></thead>
<tbody>
${rows}</tbody></table></div>`
}

export function rivalsTable(results: Results): Markup {
  const rows = results.rivals.map(
    rival => markup`<tr class="${kindOf(rival)}"><th scope="row"><span>${rival.name}</span></th><td>${rival.version ?? '–'}</td>
<td>${rival.kind === 'baton' ? 'this project' : rival.kind}</td><td>${rival.fair ? 'yes' : 'no'}</td><td><p>${rival.note}</p></td></tr>\n`,
  )
  return markup`<div class="scroll" tabindex="0" role="region" aria-label="Locks"><table class="words">
<thead><tr><th scope="col">Lock</th><th scope="col">Version</th><th scope="col">Kind</th><th scope="col">Promises order</th><th scope="col">How the benchmark uses the lock</th></tr></thead>
<tbody>
${rows}</tbody></table></div>`
}

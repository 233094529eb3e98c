/**
 * The results as one self-contained HTML page with SVG plots and without scripts, so it opens from a file and can be
 * attached to an e-mail. All text from a rival's library is escaped. As a second defence, the content security policy
 * of the page allows only the page's own style sheet.
 */
import { type Results, takesPart } from '../contract.ts'
import { entriesOf } from './entries.ts'
import { help } from './html-help.ts'
import { type Markup, markup, trusted } from './html-markup.ts'
import { capital, format, number } from './html-measures.ts'
import { costOfWaiting, plotsOf } from './html-plots.ts'
import { style } from './html-style.ts'
import { glance, goalsTable, rivalsTable, tableOf } from './html-tables.ts'

const policy = "default-src 'none'; style-src 'unsafe-inline'"

export function htmlReport(results: Results): string {
  const cost = costOfWaiting(results)
  const { goals = [], options } = results
  const [rounds, seconds] = [plural(options.rounds, 'round'), plural(options.seconds, 'second')]
  const page = markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Locks under contention: ${day(results)}</title>
<style>${trusted(style)}</style>
</head>
<body>
<header><h1>Locks under contention</h1>
<p>Measured on ${day(results)}: ${results.rivals.length} locks in ${results.scenarios.length} scenarios, in ${rounds} of ${seconds} each.</p>
${warnings(results)}
<nav aria-label="Contents"><ul>
<li><a href="#glance">At a glance</a></li><li><a href="#reading">How to read this page</a></li>
${cost && markup`<li><a href="#cost">Cost against the number of waiters</a></li>`}
${goals.length > 0 && markup`<li><a href="#goals">Goals</a></li>`}
${results.scenarios.map(({ title }, i) => markup`<li><a href="#scenario-${i}">${capital(title)}</a></li>`)}
<li><a href="#run">Machine, versions, options</a></li><li><a href="#locks">Locks</a></li>
</ul></nav></header>
<main>
<section id="glance"><h2>At a glance</h2>
${glance(results)}</section>
${help}
${
  goals.length > 0 &&
  markup`<section id="goals"><h2>Goals</h2>
${goalsTable(goals)}</section>`
}
${cost}
${results.scenarios.map((_, i) => scenarioSection(results, i))}
${runSection(results)}
<section id="locks"><h2>Locks</h2>
${rivalsTable(results)}
${notMeasured(results)}</section>
</main>
</body>
</html>
`
  return page.text
}

function scenarioSection(results: Results, i: number): Markup {
  const scenario = results.scenarios[i]!
  const entries = entriesOf(results, scenario)
  const {
    processes,
    waiters,
    keys,
    hold,
    mixed,
    permits,
    inUse,
    writerEvery,
    groups,
    groupLimit,
    servers,
    frozen,
    apart,
  } = scenario
  const many = [
    plural(processes, 'process', 'processes'),
    `${plural(waiters, 'waiter')} in each process`,
    plural(keys, 'key'),
    `each waiter holds the lock for ${number(hold)} ms`,
    ...(mixed ? ['every second waiter is fair'] : []),
    ...(permits ? [plural(permits, 'permit')] : []),
    ...(inUse ? [`another process holds ${plural(inUse, 'more permit')} of the semaphore`] : []),
    ...(writerEvery ? [`1 waiter in ${writerEvery} is a writer`] : []),
    ...(groups ? [plural(typeof groups === 'number' ? groups : groups.length, 'group')] : []),
    ...(groupLimit ? [`at most ${plural(groupLimit, 'holder')} of a group`] : []),
    ...(servers ? [plural(servers, 'server')] : []),
    ...(frozen ? [`${number(frozen)} of them frozen`] : []),
    ...(apart ? ['each waiter has its own client'] : []),
  ]
  // For crash and idle scenarios, the title already describes the participants.
  const about = ['loop', 'burst', 'drain', 'admission'].includes(scenario.kind) ? many : []
  return markup`<section id="scenario-${i}"><h2>${capital(scenario.title)}</h2>
<p class="about"><code>${scenario.name}</code> ${about.join(' · ')}</p>
${entries.length === 0 ? markup`<p>No lock was measured in this scenario.</p>` : markup`${plotsOf(scenario, entries)}${tableOf(scenario, entries, results.options.rounds)}`}
</section>`
}

/** Makes the list of reasons to doubt the figures. The list is at the top of the page. */
function warnings(results: Results): Markup | undefined {
  const broken = results.trials.filter(({ figures }) => (figures.overlaps ?? 0) > 0)
  const names = [...new Set(broken.map(({ rival, scenario }) => `${rival} in ${scenario}`))]
  const overlaps =
    names.length > 0 &&
    `These libraries let two callers hold a lock at the same time, so they do not do their job: ${names.join(', ')}.`
  const lines = [overlaps, ...results.notes].filter(line => line !== false)
  if (lines.length === 0) return undefined
  return markup`<ul class="notes">${lines.map(line => markup`<li${line === overlaps && markup` class="alarm"`}>${line}</li>`)}</ul>`
}

function runSection({ machine, options, date }: Results): Markup {
  const facts: readonly (readonly [string, string])[] = [
    ['Date', date],
    ['Processor', `${machine.cpu}, ${plural(machine.cores, 'core')}`],
    ['Memory', format('bytes', machine.memory)],
    ['System', machine.system],
    ['Node', machine.node],
    ['Server', machine.redis],
    [
      'Rounds',
      `${number(options.rounds)}. In each round, every lock is measured once per scenario, for ${number(options.seconds)} s if callers acquire and release in a loop.`,
    ],
    [
      'Cores kept awake',
      machine.warmCores
        ? 'yes: a busy loop of idle priority keeps each core awake, because a halted virtual core takes 50–100 µs to wake up'
        : 'no: idle cores may halt. A halted virtual core takes 50–100 µs to wake up, so a library that lets cores become idle is slower',
    ],
    [
      'Added round trip',
      machine.rtt > 0
        ? `a proxy adds ${number(machine.rtt)} ms to each round trip between clients and server`
        : 'none was added: clients and servers are on one machine, where round trips cost little',
    ],
  ]
  return markup`<section id="run"><h2>Machine, versions, options</h2>
<dl class="facts">${facts.map(([name, value]) => markup`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl></section>`
}

function notMeasured(results: Results): Markup | false {
  const where = new Map<string, { name: string; why: string; titles: string[] }>()
  for (const scenario of results.scenarios) {
    for (const entry of entriesOf(results, scenario)) {
      for (const why of entry.shortcomings) {
        const { name } = entry.rival
        const same = where.get(`${name}\n${why}`) ?? { name, why, titles: [] }
        where.set(`${name}\n${why}`, same)
        same.titles.push(capital(scenario.title))
      }
    }
  }
  const { scenarios, rivals, trials, options } = results
  const turns =
    scenarios.flatMap(scenario => rivals.filter(rival => takesPart(rival, scenario))).length * options.rounds
  const complete = trials.length === turns
  if (where.size === 0) return complete && markup`<p>Every lock was measured in every round of its scenarios.</p>`
  const all = (titles: readonly string[]) =>
    titles.length === results.scenarios.length ? 'all scenarios' : titles.join(' · ')
  return markup`<h3>Locks that failed, were skipped, or were left out of later rounds</h3><ul class="failures">${[
    ...where.values(),
  ].map(({ name, why, titles }) => markup`<li><b>${name}</b>: ${why} <span>(${all(titles)})</span></li>\n`)}</ul>`
}

const day = ({ date }: Results): string => date.slice(0, 10)

function plural(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`
}

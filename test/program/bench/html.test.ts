import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Results } from '../../../benchmarks/contract.ts'
import { htmlReport } from '../../../benchmarks/report/html.ts'
import { capital } from '../../../benchmarks/report/html-measures.ts'

const all = new URL('../../../benchmarks/results/all.json', import.meta.url)
const results: Results = JSON.parse(readFileSync(all, 'utf8'))

/** Returns the text of a page, without the tags. */
const text = (html: string) =>
  html
    .replace(/<style>.*?<\/style>/s, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(
      /&lt;|&gt;|&amp;|&quot;|&#39;/g,
      entity => ({ '&lt;': '<', '&gt;': '>', '&amp;': '&', '&quot;': '"' })[entity] ?? "'",
    )
    .replace(/\s+/g, ' ')

/** Returns the part of the page about one scenario. */
function section(html: string, i: number): string {
  return html.slice(html.indexOf(`<section id="scenario-${i}"`)).split('</section>')[0] as string
}

const page = htmlReport(results)
const partOf = (name: string) =>
  section(
    page,
    results.scenarios.findIndex(scenario => scenario.name === name),
  )

describe('the page', () => {
  test('has a table for every scenario, with every rival that was to take part', () => {
    results.scenarios.forEach(({ title, name }, i) => {
      const part = section(page, i)
      expect(part).toContain(`<h2>${capital(title)}</h2>`)
      const names = new Set(results.trials.filter(({ scenario }) => scenario === name).map(({ rival }) => rival))
      for (const rival of names) expect(part).toContain(`<th scope="row"><span>${rival}</span>`)
    })
  })

  test('names machine, versions, date, options, notes and each way of use', () => {
    const shown = text(page)
    const { machine, date, notes, rivals } = results
    const facts = [machine.cpu, machine.system, machine.node, machine.redis, date, ...notes]
    for (const fact of [...facts, ...rivals.map(({ note }) => note)]) expect(shown).toContain(fact)
    for (const { version } of rivals) if (version) expect(shown).toContain(version)
  })

  test('has the plots: distribution, throughput, commands, cost against waiters, fairness', () => {
    for (const title of [
      'Distribution of the hand-off latency',
      'Acquisitions per second',
      'Commands per acquisition',
      'Fairness over time',
    ]) {
      expect(partOf('2x8')).toContain(`<h4>${title}</h4>`)
    }
    for (const title of ['Longest wait, fair callers', 'Longest wait, unfair callers']) {
      expect(partOf('mixed')).toContain(`<h4>${title}</h4>`)
    }
    expect(page).toContain('<h2>Cost against the number of waiters</h2>')
  })

  test('refers to nothing outside itself, and runs no script', () => {
    expect(page).not.toMatch(/https?:|\burl\(|@import|<script|<link|<img|<iframe|\ssrc=|\son\w+=/i)
    const links = [...page.matchAll(/href="([^"]*)"/g)].map(([, to]) => to as string)
    for (const link of links) expect(page).toContain(`id="${link.slice(1)}"`)
    expect(links.every(link => link.startsWith('#'))).toBe(true)
    expect(page).toContain(`default-src 'none'`.replaceAll("'", '&#39;'))
  })

  test('closes every tag that it opens', () => {
    const open: string[] = []
    const wrong: string[] = []
    for (const [, end, name, rest] of page.matchAll(/<(\/?)([a-z][a-z0-9]*)((?:"[^"]*"|[^">])*)>/gi)) {
      if (/^(meta|br)$/.test(name!) || rest!.endsWith('/')) continue
      if (!end) open.push(name!)
      else if (open.pop() !== name) wrong.push(name!)
    }
    expect([...open, ...wrong]).toEqual([])
  })
})

describe('text of others', () => {
  test('cannot become markup, wherever it appears', () => {
    const bad = `"'><script>alert(1)</script><img src=x onerror=alert(1)>&amp;\u0000\u202e`
    const { machine } = results
    const hostile: Results = {
      ...results,
      date: bad,
      machine: { ...machine, cpu: bad, system: bad, node: bad, redis: bad },
      scenarios: results.scenarios.map(scenario => ({ ...scenario, name: bad + scenario.name, title: bad })),
      rivals: results.rivals.map(rival => ({ ...rival, name: bad + rival.name, note: bad, version: bad })),
      trials: results.trials.map(trial => ({
        ...trial,
        rival: bad + trial.rival,
        scenario: bad + trial.scenario,
        ...(trial.outcome === 'measured' ? {} : { reason: bad + trial.reason }),
      })),
      notes: results.notes.map(() => bad),
    }
    const shown = htmlReport(hostile)
    expect(shown).not.toMatch(/<script|<img/i)
    for (const character of ['\u0000', '\u202e']) expect(shown.includes(character)).toBe(false)
    const tags = (html: string) => html.match(/<\/?[a-z][a-z0-9]*/gi)
    expect(tags(shown)).toEqual(tags(page))
    expect(text(shown)).toContain('<script>alert(1)</script>')
  })
})

/** Writes the table of docs/servers.md that says on which servers the contract ran, from a run of the whole matrix. */
import { readFileSync, writeFileSync } from 'node:fs'
import type { Outcome } from '../suites.ts'
import type { ServerRow } from './servers.ts'

const page = new URL('../../docs/servers.md', import.meta.url)
const [begin, end] = ['<!-- from npm run test:matrix -- --page -->\n', '<!-- end of what ran -->\n'] as const

export function writePage(rows: readonly ServerRow[], outcomes: readonly Outcome[]): void {
  const lines = rows.map(({ name, note, without }, i) => {
    const { noted, passed } = outcomes[i]!
    const version = noted.server?.replace(/^\w+ /, '')
    const left = without.map(file => `\`${file.replace(/^.*\/|\.test\.ts$/g, '')}\``).join(', ')
    const remarks = [note, left && `without ${left}`].filter(Boolean).join('; ')
    return `| ${name} | ${version} | ${noted.node} | ${passed.toLocaleString('en')} | ${remarks} |\n`
  })
  const table = `\n| server | version | on | tests passed | remarks |\n| --- | --- | --- | ---: | --- |\n${lines.join('')}\n`
  const text = readFileSync(page, 'utf8')
  const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)]
  writeFileSync(page, text.slice(0, from) + table + text.slice(to))
}

/** The part of docs/protocol.md that says what each script is given and replies: made of the headers of lua/, so that it is true. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { usualTexts } from '../lua/usual-texts.ts'

const folder = new URL('../../lua/mutex/', import.meta.url)
const begin = '<!-- made by scripts/protocol-page/main.ts -->'
const end = '<!-- made until here -->'

/** The page with this part as it ought to be. */
export function withReference(page: string): string {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`the page has no place for the scripts, between ${begin} and ${end}`)
  return `${page.slice(0, from)}${begin}\n\n${reference()}\n\n${page.slice(to)}`
}

function reference(): string {
  const names = readdirSync(folder)
    .filter(file => file.endsWith('.lua'))
    .map(file => file.slice(0, -'.lua'.length))
    .sort()
  const rows = names.map(name => `| [${name}](#${name}) | \`${sha1Of(name)}\` |`)
  return [['| script | SHA1, single server |', '| --- | --- |', ...rows].join('\n'), ...names.map(section)].join('\n\n')
}

/** By which EVALSHA names it. */
function sha1Of(name: string): string {
  const camel = name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
  return createHash('sha1')
    .update(usualTexts[camel as keyof typeof usualTexts])
    .digest('hex')
}

function section(name: string): string {
  const header = headerOf(readFileSync(new URL(`${name}.lua`, folder), 'utf8'))
  const keys = header.indexOf('KEYS')
  const invariants = header.findIndex(line => line.startsWith('Invariants: '))
  const interfaces = header.slice(keys, invariants < 0 ? undefined : invariants)
  const purpose = header.slice(0, keys).join('\n').trim().slice(`${name}: `.length)
  const kept = invariants < 0 ? [] : [`${header[invariants]!.replace('Invariants:', 'Keeps')}.`]
  return [
    `### ${name}`,
    `${purpose.charAt(0).toUpperCase()}${purpose.slice(1)}`,
    ['```text', ...interfaces, '```'].join('\n'),
    ...kept,
  ].join('\n\n')
}

/** What stands above the first line of code, or of what is included. */
function headerOf(source: string): string[] {
  const lines = source.split('\n')
  const length = lines.findIndex(line => !line.startsWith('--') || line.startsWith('-- include: '))
  return lines.slice(0, length).map(line => line.slice('-- '.length))
}

/**
 * The part of docs/protocol.md about the arguments and replies of each script. This part is generated from the headers
 * in lua/, so that it always matches the scripts.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { readWriteTexts, semaphoreTexts, usualTexts } from '../lua/usual-texts.ts'

const lua = new URL('../../lua/', import.meta.url)
const begin = '<!-- made by scripts/protocol-page/main.ts -->'
const end = '<!-- made until here -->'

interface Scripts {
  readonly folder: string
  /** The end of each script's title. It says to which kinds of lock the scripts belong. */
  readonly whose: string
  /**
   * The texts of the scripts, as they are sent to Redis. The outer key is a kind of lock, by the title of its column in
   * the page's table. The inner key is the name of a script.
   */
  readonly texts: Readonly<Record<string, Readonly<Record<string, string>>>>
}

const all: readonly Scripts[] = [
  { folder: 'mutex/', whose: '', texts: { 'SHA1, single server': usualTexts } },
  {
    folder: 'permits/',
    whose: ', with permits',
    texts: { 'SHA1 for a semaphore': semaphoreTexts, 'SHA1 for a read-write lock': readWriteTexts },
  },
]

/** Returns the page with the scripts' arguments and replies up to date. */
export function withReference(page: string): string {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`the page has no place for the scripts, between ${begin} and ${end}`)
  return `${page.slice(0, from)}${begin}\n\n${all.map(reference).join('\n\n')}\n\n${page.slice(to)}`
}

function reference({ folder, whose, texts }: Scripts): string {
  const names = readdirSync(new URL(folder, lua))
    .filter(file => file.endsWith('.lua'))
    .map(file => file.slice(0, -'.lua'.length))
    .sort()
  const titles = Object.keys(texts)
  const table = [
    `| script | ${titles.join(' | ')} |`,
    `| --- |${' --- |'.repeat(titles.length)}`,
    ...names.map(name => {
      const anchor = (name + whose).replaceAll(',', '').replaceAll(' ', '-')
      const hashes = Object.values(texts).map(each => `\`${sha1Of(each, name)}\``)
      return `| [${name}](#${anchor}) | ${hashes.join(' | ')} |`
    }),
  ]
  const sections = names.map(name => section(folder + name, whose))
  return [table.join('\n'), ...sections].join('\n\n')
}

function sha1Of(texts: Readonly<Record<string, string>>, name: string): string {
  const camel = name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
  return createHash('sha1')
    .update(texts[camel] as string)
    .digest('hex')
}

function section(path: string, whose: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1)
  const header = headerOf(readFileSync(new URL(`${path}.lua`, lua), 'utf8'))
  const keys = header.indexOf('KEYS')
  const invariants = header.findIndex(line => line.startsWith('Invariants: '))
  const interfaces = header.slice(keys, invariants < 0 ? undefined : invariants)
  const purpose = header.slice(0, keys).join('\n').trim().slice(`${name}: `.length)
  const kept = header[invariants]?.startsWith('Invariants')
    ? [`${header[invariants]!.replace('Invariants:', 'Keeps')}.`]
    : []
  return [
    `### ${name}${whose}`,
    `${purpose.charAt(0).toUpperCase()}${purpose.slice(1)}`,
    ['```text', ...interfaces, '```'].join('\n'),
    ...kept,
  ].join('\n\n')
}

/** Returns the lines above the first line of code. */
function headerOf(source: string): string[] {
  const lines = source.split('\n')
  const length = lines.findIndex(line => !line.startsWith('--'))
  return lines.slice(0, length).map(line => line.slice('-- '.length))
}

/**
 * The part of docs/protocol.md that lists the scripts. This part is generated from the headers in lua/, so that it always
 * matches the scripts.
 */
import { createHash } from 'node:crypto'
import { camel } from '../lua/bundle.ts'
import { type Script, unitsOf } from '../lua/source.ts'
import { readWriteTexts, semaphoreTexts, usualTexts } from '../lua/usual-texts.ts'

const begin = '<!-- made by scripts/protocol-page/main.ts -->'
const end = '<!-- made until here -->'
/** By the titles of their columns, the texts of each folder's scripts. */
const folders: Readonly<Record<string, Readonly<Record<string, object>>>> = {
  mutex: { 'SHA1, single server': usualTexts },
  permits: { 'SHA1 for a semaphore': semaphoreTexts, 'SHA1 for a read-write lock': readWriteTexts },
}

/** Returns the page with the lists of scripts up to date. */
export function withReference(page: string): string {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`the page has no place for the scripts, between ${begin} and ${end}`)
  const { scripts } = unitsOf(new URL('../../lua/', import.meta.url), Object.keys(folders))
  const tables = Object.entries(folders).map(([folder, texts], i) => tableOf(folder, scripts[i]!, texts))
  return `${page.slice(0, from)}${begin}\n\n${tables.join('\n\n')}\n\n${page.slice(to)}`
}

function tableOf(folder: string, scripts: readonly Script[], texts: Readonly<Record<string, object>>): string {
  const titles = [`${folder}/`, 'ARGV', 'replies', ...Object.keys(texts)]
  const rows = scripts.map(({ name, args, replies }) => {
    const hashes = Object.values(texts).map(each => sha1Of((each as Record<string, string>)[camel(name)]!))
    const list = args.map(arg => `\`${arg.name}${arg.mark}\``).join(', ')
    const words = replies.map(word => `\`${word}\``).join(', ')
    return [`[${name}](../lua/${folder}/${name}.lua)`, list, words, ...hashes.map(hash => `\`${hash}\``)]
  })
  return [titles, titles.map(() => '---'), ...rows].map(cells => `| ${cells.join(' | ')} |`).join('\n')
}

function sha1Of(text: string): string {
  return createHash('sha1').update(text).digest('hex')
}

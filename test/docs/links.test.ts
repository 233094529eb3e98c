/**
 * Checks that every link in the documentation to a place in this project has a target: both the file and the heading
 * exist.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { expect, test } from 'vitest'
import { type Page, pageNames, parsePage, readPage, root } from './page.ts'

const pages = new Map(pageNames().map(name => [name, readPage(name)]))

const { homepage } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as { homepage: string }
/**
 * The beginning of the address of any file in the repository. Published pages use such addresses to link to unpublished
 * pages.
 */
const repository = `${homepage.replace('#readme', '')}/blob/main/`
/** Ends the address of a picture: GitHub then answers with the file, and not with a page about the file. */
const raw = /\?raw=true$/

function brokenLinks({ name, links, anchors }: Page): string[] {
  return links.flatMap(({ text: url, line }) => {
    const here = url.startsWith(repository)
      ? posix.relative(posix.dirname(name), url.slice(repository.length).replace(raw, ''))
      : url
    if (/^[a-z][a-z+.-]*:/i.test(here)) return []
    const [path = '', anchor] = here.split('#')
    const target = path === '' ? name : posix.join(posix.dirname(name), decodeURIComponent(path))
    const broken = (why: string) => [`${name}:${line}: ${url}: ${why}`]
    if (path.startsWith('/') || target.startsWith('..')) return broken('leads out of the project')
    if (path !== '' && !existsSync(new URL(target, root))) return broken('there is no such file')
    if (anchor === undefined) return []
    const known = target === name ? anchors : pages.get(target)?.anchors
    return known?.has(decodeURIComponent(anchor)) ? [] : broken('there is no such heading')
  })
}

test.each([...pages.keys()])('%s', name => {
  expect(brokenLinks(pages.get(name)!)).toEqual([])
})

test.each(['README.md', 'CHANGELOG.md'])(
  '%s, which is published, links to unpublished pages by their addresses',
  name => {
    const published = ['CHANGELOG.md', 'LICENSE']
    const elsewhere = readPage(name).links.map(({ text: url }) => url)
    expect(elsewhere.filter(url => url.startsWith(repository)).length).toBeGreaterThan(0)
    expect(elsewhere.filter(url => !/^(https:|#)/.test(url) && !published.includes(url))).toEqual([])
  },
)

test('the README fits on one screen: it soon comes to the code, and its table is narrow', () => {
  const text = readFileSync(new URL('README.md', root), 'utf8')
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(6_000)
  const [before, code] = text.split(/```ts\n|```\n\n<!-- check/) as [string, string]
  expect(before.split(/[#\s]+/).length).toBeLessThanOrEqual(40)
  expect(code.split('\n').filter(line => line.length > 76)).toEqual([])
  const rows = text.match(/^\|.*\|$/gm)!.map(row =>
    row
      .slice(1, -1)
      .split('|')
      .map(cell => cell.trim()),
  )
  expect(rows.filter(cells => cells.length === 4)).toHaveLength(2 + 8)
  expect(rows.flat().filter(cell => cell.split(' ').length > 5)).toEqual([])
})

test('docs/errors.md has a heading for each code, and each class of errors links to its own', () => {
  const source = (name: string) => readFileSync(new URL(name, root), 'utf8')
  const names = readdirSync(new URL('src/', root), { recursive: true, encoding: 'utf8' }).filter(name =>
    name.endsWith('.ts'),
  )
  const codes = new Set(names.flatMap(name => source(`src/${name}`).match(/(?<=')ERR_LOCK_[A-Z_]+(?=')/g) ?? []))
  expect(codes.size).toBeGreaterThan(9)
  const headings = [...source('docs/errors.md').matchAll(/^#+ (ERR_.*)$/gm)].map(([, code]) => code)
  expect(headings.sort()).toEqual([...codes].sort())
  const classes = source('src/errors.ts').split(/^export class /m)
  const linked = classes.slice(1).map((text, i) => [/super\(\s*'(\w+)'/.exec(text)?.[1], classes[i]] as const)
  for (const [code, before] of linked) {
    expect(before).toContain(` * @see ${repository}docs/errors.md${code ? `#${code.toLowerCase()}` : ''}\n`)
  }
})

test('docs/options.md has a row for each option of a call, of a semaphore and of a client', () => {
  const source = readFileSync(new URL('src/options.ts', root), 'utf8')
  const of = (name: string) => [
    ...new RegExp(`interface ${name} (?:extends \\w+ )?\\{(.*?)\\n\\}`, 's')
      .exec(source)![1]!
      .matchAll(/^ {2}(\w+)\?:/gm),
  ]
  const options = ['LockOptions', 'SemaphoreOptions', 'ClientOptions'].flatMap(of).map(([, name]) => name)
  expect(options.length).toBeGreaterThan(25)
  const rows = [...readFileSync(new URL('docs/options.md', root), 'utf8').matchAll(/^\| (`.*?`) \|/gm)]
  const described = rows.flatMap(([, names]) => names!.match(/\w+/g)!)
  expect(options.filter(name => !described.includes(name!))).toEqual([])
})

test.each(['CONTRIBUTING.md', 'docs/life-of-a-request.md', 'src/README.md'])(
  'every file that %s names exists',
  name => {
    const text = readFileSync(new URL(name, root), 'utf8')
    const named =
      text.match(
        /(?<=`)(?:\.ci|\.github|benchmarks|cli|docs|local-redis|lua|scripts|site|spec|src|test)\/[\w./-]*(?=`)/g,
      ) ?? []
    if (name === 'CONTRIBUTING.md') expect(named.length).toBeGreaterThan(50)
    expect(named.filter(path => !existsSync(new URL(path, root)))).toEqual([])
  },
)

test('broken links are found', () => {
  const page = parsePage(
    'docs/made-up.md',
    [
      '# A `heading`, with marks',
      '',
      '[1](#a-heading-with-marks) [2](#another) [3](options.md) [4](../README.md) [5](none.md) [6](../../out.md)',
      `[a](${repository}docs/options.md) [b](${repository}docs/gone.md) [c](${repository}docs/options.md#gone)`,
      '[7](options.md#none) [8](https://example.com/none) [9][ref] <a href="none.html">10</a> ![11](none.png)',
      '',
      '| table |',
      '| --- |',
      '| [12](none-in-a-table.md) |',
      '',
      '[ref]: none-by-reference.md',
    ].join('\n'),
  )
  const broken = brokenLinks(page).map(text => text.replace(/^docs\/made-up\.md:\d+: /, '').replace(/: .*/, ''))
  expect(broken).toEqual([
    ...['#another', 'none.md', '../../out.md'],
    ...[`${repository}docs/gone.md`, `${repository}docs/options.md#gone`],
    ...['options.md#none', 'none.html', 'none.png'],
    ...['none-in-a-table.md', 'none-by-reference.md'],
  ])
})

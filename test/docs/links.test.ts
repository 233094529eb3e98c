/**
 * Checks that every link in the documentation to a place in this project has a target: both the file and the heading
 * exist.
 */
import { existsSync, readFileSync } from 'node:fs'
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

function brokenLinks({ name, links, anchors }: Page): string[] {
  return links.flatMap(({ text: url, line }) => {
    const here = url.startsWith(repository) ? posix.relative(posix.dirname(name), url.slice(repository.length)) : url
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

test('the README, which is published, links to unpublished pages by their addresses in the repository', () => {
  const published = ['CHANGELOG.md', 'LICENSE']
  const elsewhere = readPage('README.md').links.map(({ text: url }) => url)
  expect(elsewhere.filter(url => url.startsWith(repository)).length).toBeGreaterThan(20)
  expect(elsewhere.filter(url => !/^(https:|#)/.test(url) && !published.includes(url))).toEqual([])
})

test('broken links are found', () => {
  const page = parsePage(
    'docs/made-up.md',
    [
      '# A `heading`, with marks',
      '',
      '[1](#a-heading-with-marks) [2](#another) [3](tuning.md) [4](../README.md) [5](none.md) [6](../../out.md)',
      `[a](${repository}docs/tuning.md) [b](${repository}docs/gone.md) [c](${repository}docs/tuning.md#gone)`,
      '[7](tuning.md#none) [8](https://example.com/none) [9][ref] <a href="none.html">10</a> ![11](none.png)',
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
    ...[`${repository}docs/gone.md`, `${repository}docs/tuning.md#gone`],
    ...['tuning.md#none', 'none.html', 'none.png'],
    ...['none-in-a-table.md', 'none-by-reference.md'],
  ])
})

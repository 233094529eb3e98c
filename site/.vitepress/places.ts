/**
 * Which file of the repository is which page of the site, and where links lead that are written for the repository's own
 * page: to another page, or, for what is no page, to the file in the repository.
 */
import { posix } from 'node:path'

export const repository = 'https://github.com/redis-baton/redis-baton'
export const base = '/redis-baton/'
/** Where the site is published. Links of the documentation to the reference begin with it, since only the site has one. */
export const published = `https://redis-baton.github.io${base}`

const folders: readonly (readonly [files: RegExp, place: string])[] = [
  [/^site\/(.+)\.md$/, ''],
  [/^docs\/(life-of-a-request|protocol|model|testing|decisions\/.+)\.md$/, 'inside/'],
  [/^((?:lua|benchmarks|src)\/(?:.+\/)?README)\.md$/, 'inside/'],
  [/^(CHANGELOG|CONTRIBUTING|CODE_OF_CONDUCT)\.md$/, 'inside/'],
  [/^docs\/([^/]+)\.md$/, 'guide/'],
  [/^(SECURITY)\.md$/, 'guide/'],
  [/^(examples\/(?:.+\/)?README)\.md$/, ''],
]

/** From a file's path in the repository to its path in the site; undefined if it is no page. */
export function placeOf(file: string): string | undefined {
  if (file === 'README.md') return 'overview.md'
  for (const [files, place] of folders) {
    const name = files.exec(file)?.[1]
    if (name) return `${place}${name.replace(/\bREADME$/, 'index')}.md`
  }
  return undefined
}

/** Turns the target of a link in that file into what it is in the site. */
export function linkOf(url: string, file: string): string {
  // A report is no page of VitePress: by its whole address, the browser loads it.
  if (url.startsWith(`${published}reports/`)) return url
  if (url.startsWith(published)) return url.slice(published.length - 1)
  if (url.startsWith('#')) return url
  const [path = '', anchor] = url.split('#')
  const target = fileOf(path, file)
  if (target === undefined) return url
  const place = placeOf(target)
  const hash = anchor === undefined ? '' : `#${anchor}`
  if (place) return `/${place}${hash}`
  return path.startsWith(repository) ? url : `${repository}/blob/main/${target}${hash}`
}

/** Returns the file of the repository that such a link, or a picture, names; undefined if it leads elsewhere. */
export function fileOf(url: string, file: string): string | undefined {
  const blob = `${repository}/blob/main/`
  if (url.startsWith(blob)) return url.slice(blob.length).replace(/\?raw=true$/, '')
  return /^[a-z][a-z+.-]*:/i.test(url) ? undefined : posix.join(posix.dirname(file), url)
}

/** The pages for those who change the project or judge it from inside. Users' pages are found before them. */
export const inside = /^inside\//

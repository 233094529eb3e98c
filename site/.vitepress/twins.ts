/**
 * Writes, for programs that read the site, a Markdown twin of each page (its address, with .md instead of .html) and
 * llms.txt, which lists them.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { inside, linkOf, placeOf, published } from './places.ts'
import { sidebar } from './sidebar.ts'

export async function writeTwins(files: readonly string[], root: string, out: string): Promise<void> {
  const order = JSON.stringify(sidebar())
  const rank = (place: string) => order.indexOf(`"/${place.replace(/(index)?\.md$/, '')}"`)
  const pages = files
    .map(file => ({ file, place: placeOf(file) ?? file }))
    .filter(({ place }) => place !== 'index.md')
    .sort((a, b) => rank(a.place) - rank(b.place))
  const lists = new Map<string, string[]>()
  for (const { file, place } of pages) {
    const text = adapted(await readFile(join(root, file), 'utf8'), file)
    await mkdir(dirname(join(out, place)), { recursive: true })
    await writeFile(join(out, place), text)
    const list = place.startsWith('reference/') ? 'Reference' : inside.test(place) ? 'Optional' : 'Guide'
    const [, title = place] = /^# (.*)$/m.exec(text) ?? []
    lists.set(list, [...(lists.get(list) ?? []), `- [${title.replace(/[`\\]/g, '')}](${published}${place})`])
  }
  const sections = ['Guide', 'Reference', 'Optional'].map(name => `## ${name}\n\n${lists.get(name)!.join('\n')}`)
  const about = '> Locks for Redis and Node.js whose waiters do not poll.'
  await writeFile(join(out, 'llms.txt'), `# redis-baton\n\n${about}\n\n${sections.join('\n\n')}\n`)
}

/** Takes out the comments, which are for tests, and programs, and makes every link one that works anywhere. */
function adapted(source: string, file: string): string {
  const shown = source.replace(/^<(!--[\s\S]*?--|script[\s\S]*?<\/script)>\n\n?/gm, '')
  return shown.replace(/(\]\(|^\[[^\]]+\]: )([^)\s]+)/gm, (_, before: string, url: string) => {
    const link = linkOf(url, file)
    return `${before}${link.startsWith('/') ? published + link.slice(1) : link}`
  })
}

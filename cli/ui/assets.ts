/** The files of the page: its modules as the compiler left them beside this program, and what needs no compiler. */
import { readdir, readFile } from 'node:fs/promises'
import { documentOf } from './document.ts'
import type { Asset } from './server.ts'
import { icon, style } from './style.ts'

const folder = new URL('./page/', import.meta.url)

/** By file name; '' is the page itself. `place`: which Redis, for the head of the page. */
export async function assetsOf(place: string, prefix: string, mayRelease: boolean): Promise<Map<string, Asset>> {
  const names = (await readdir(folder)).filter(name => name.endsWith('.js'))
  const modules = names.map(async name => {
    const text = await readFile(new URL(name, folder), 'utf8')
    return [name, { type: 'text/javascript', text }] as const
  })
  return new Map<string, Asset>([
    ['', { type: 'text/html', text: documentOf(place, prefix, mayRelease) }],
    ['style.css', { type: 'text/css', text: style }],
    ['icon.svg', { type: 'image/svg+xml', text: icon }],
    ...(await Promise.all(modules)),
  ])
}

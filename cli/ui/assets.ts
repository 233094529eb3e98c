/** The files of the page: its built script, and the files that need no build. */
import { readFile } from 'node:fs/promises'
import { packageRoot } from '../../local-redis/package-root.ts'
import { documentOf } from './document.ts'
import type { Asset } from './server.ts'
import { icon, style } from './style.ts'

const script = new URL('dist/cli/ui/page.js', packageRoot)

/**
 * Returns the files by name; '' is the page itself. `place` is the address of Redis, which the page shows as its
 * heading.
 */
export async function assetsOf(place: string, prefix: string, mayRelease: boolean): Promise<Map<string, Asset>> {
  return new Map<string, Asset>([
    ['', { type: 'text/html', text: documentOf(place, prefix, mayRelease) }],
    ['style.css', { type: 'text/css', text: style }],
    ['icon.svg', { type: 'image/svg+xml', text: icon }],
    ['page.js', { type: 'text/javascript', text: await readFile(script, 'utf8') }],
  ])
}

/**
 * Lets the page to play in (../play) use the client, and the Redis of the simulation, as they are in the repository: in
 * a browser, stand-ins replace what these sources import of Node. While pages are rendered, nothing plays.
 */
import { realpathSync } from 'node:fs'
import { relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const play = new URL('../play/', import.meta.url)
const node = fileURLToPath(new URL('node.ts', play))
const lua = fileURLToPath(new URL('lua.ts', play))
const root = realpathSync(new URL('../../', import.meta.url))

export const standIns = {
  name: 'stand-ins',
  enforce: 'pre' as const,
  resolveId(id: string, importer = '', { ssr }: { ssr?: boolean } = {}) {
    if (ssr) return id === './play/main.ts' ? { id, external: true } : undefined
    const [folder] = relative(root, importer).split(sep)
    if (!(folder === 'src' || folder === 'test') || !importer.endsWith('.ts')) return undefined
    if (id.startsWith('node:') || id.endsWith('/ioredis.cjs')) return node
    return /^wasmoon/.test(id) ? lua : undefined
  },
}

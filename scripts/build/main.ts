/**
 * Makes dist/ from the sources:
 *
 *     src/  ── rolldown ──▶ dist/<entry>.js, .cjs      the library, for `import`, with source maps, and for `require`
 *           ── tsc, rollup ─▶ dist/<entry>.d.ts, .d.cts  its declarations, rolled up
 *     cli/, benchmarks/, local-redis/ ── rolldown ──▶ dist/cli/…   the program, with all packages that it uses
 *     the licences of everything bundled ──▶ dist/third-party-notices.txt
 *
 *   npm run build
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { declarations } from './declarations.ts'
import { root } from './entries.ts'
import { library } from './library.ts'
import { writeNotices } from './notices.ts'
import { page, program } from './program.ts'

// Removes dist/ first. Otherwise, if a source file was renamed, the file with the old name would stay in the package.
rmSync(join(root, 'dist'), { recursive: true, force: true })
const [bundled] = await Promise.all([Promise.all([library(), program(), page()]), declarations()])
await writeNotices(bundled.flat())

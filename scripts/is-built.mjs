// Exits with 0 if BATON_BUILT says that what `npm run build` makes is there already, so that a check of many steps builds once: that
// takes less time, and a second build would take dist/ away from whatever runs beside it.
import { existsSync } from 'node:fs'

const made = ['../dist/index.js', '../dist/cli/main.js'].every(path => existsSync(new URL(path, import.meta.url)))
process.exit(process.env['BATON_BUILT'] && made ? 0 : 1)

// Exits with 0 if BATON_BUILT says that dist/ is already built. So a check of many steps builds only once. A second
// build would cost time, and would remove dist/ while other steps use it.
import { existsSync } from 'node:fs'

const made = ['../dist/index.js', '../dist/cli/main.js'].every(path => existsSync(new URL(path, import.meta.url)))
process.exit(process.env['BATON_BUILT'] && made ? 0 : 1)

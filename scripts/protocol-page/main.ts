/** Writes the contents of the headers in lua/ into docs/protocol.md. */
import { readFileSync, writeFileSync } from 'node:fs'
import { withReference } from './reference.ts'

const page = new URL('../../docs/protocol.md', import.meta.url)
writeFileSync(page, withReference(readFileSync(page, 'utf8')))

/**
 * Prints a table of all that users see: errors, warnings, the help of every command, what the program prints, events. It is
 * read from the sources, and kept nowhere.
 *
 *   npm run --silent words                     as the sources are now
 *   npm run --silent words -- --at <commit>    as they were
 */
import { parseArgs } from 'node:util'
import { markdownTable } from 'markdown-table'
import { messagesOf } from './table.ts'
import { withTree } from './tree.ts'

const { values } = parseArgs({ options: { at: { type: 'string' } } })
const messages = withTree(values.at, messagesOf)
const rows = messages.map(({ file, line, kind, detail, text }) => [`${file}:${line}`, kind, detail, cell(text)])
console.log(markdownTable([['where', 'kind', 'which', 'text'], ...rows], { alignDelimiters: false, padding: true }))

function cell(text: string): string {
  return text.trim().replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', '<br>')
}

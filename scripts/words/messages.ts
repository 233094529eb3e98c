/**
 * Prints a table of all that users see: errors, warnings, the help of every command, printed lines, events. The table
 * is made from the sources each time, and is not stored.
 *
 *   npm run --silent words                     from the present sources
 *   npm run --silent words -- --at <commit>    from the sources of that commit
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

/** Reads the commands that docs/operations.md tells the user to type. */
import { readFileSync } from 'node:fs'

const text = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8')

/** Returns the lines of the `ACL SETUSER` block under the heading that begins with this word. */
export function linesOf(heading: string): string[] {
  const start = text.search(new RegExp(`^### ${heading}`, 'im'))
  const [, block = ''] = /```[a-z]*\n([\s\S]*?)```/.exec(text.slice(start)) ?? []
  return block.trim().split('\n')
}

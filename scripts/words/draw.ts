/**
 * Draws comments, messages and pages at random, for measuring whether readers understand the words of this project at
 * once. Prints one document.
 *
 *   npm run --silent words:draw -- --seed 1                  from the present files
 *   npm run --silent words:draw -- --seed 1 --at <commit>    from the files of that commit
 *
 * How to measure: give the document, and nothing else, to an engineer who knows Node and Redis and has never seen this
 * code. It begins with the reader's task (task.ts). A person who knows the code then compares the meanings that the
 * reader wrote down with the code. A comment or a message fails if the reader missed its meaning, or marked it. A page
 * fails if one of its three questions was not answered, or answered wrongly. The aims: at most 3 of 60 comments fail,
 * none of 30 messages fails, and no page fails.
 *
 * The draw depends only on the seed and the files. Each comment in the sources has the same chance, whichever file it
 * is in. Each page has the same chance as every other page, and so has each message of at least four words. Shorter
 * messages are not drawn, because most of them mean nothing without the lines around them. Use a new seed for each
 * measurement, because the texts of an earlier draw may have been improved since.
 */
import { parseArgs } from 'node:util'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { commented, commentsIn } from './comments.ts'
import { messagesOf } from './table.ts'
import { PAGES_TASK, TASK } from './task.ts'
import { type Tree, withTree } from './tree.ts'

const COMMENTS = 60
const MESSAGES = 30
const PAGES = 6

/** Marks a code block in Markdown. It is longer than any such mark in a comment. */
const FENCE = '````'

const rooms = /^(?:src|lua|cli|local-redis|benchmarks|scripts|spec|test|examples)\//
const pages = /^(?:README|CONTRIBUTING|lua\/README|docs\/(?:decisions\/)?[^/]+)\.md$/

const { values } = parseArgs({ options: { seed: { type: 'string' }, at: { type: 'string' } } })
const seed = Number(values.seed)
if (!Number.isSafeInteger(seed)) throw new Error('--seed needs a whole number')
console.log(withTree(values.at, draw))

function draw(tree: Tree): string {
  const comments = tree.files
    .filter(file => rooms.test(file) && commented.test(file))
    .flatMap(file => commentsIn(file, tree.read(file)).map(comment => ({ file, ...comment })))
  const messages = messagesOf(tree).filter(({ text }) => isWhole(text))
  const documents = tree.files.filter(file => pages.test(file))
  const drawnComments = drawn(comments, COMMENTS, 1).map(({ file, line, text, code, within }, i) =>
    [
      ...[`### ${i + 1}. ${file}:${line}`, '', ...(within === undefined ? [] : [`in: \`${within}\``, ''])],
      ...[FENCE, text, FENCE, '', 'code', '', FENCE, ...code, FENCE, ''],
    ].join('\n'),
  )
  const drawnMessages = drawn(messages, MESSAGES, 2).map(({ file, line, kind, detail, text }, i) =>
    [`### ${i + 1}. ${kind}${detail && ` (${detail})`}, ${file}:${line}`, '', FENCE, text.trim(), FENCE, ''].join('\n'),
  )
  return [
    `# A draw of words, seed ${seed}`,
    '',
    TASK,
    `## Comments: ${COMMENTS} of ${comments.length}`,
    '',
    ...drawnComments,
    `## Messages: ${MESSAGES} of ${messages.length}`,
    '',
    'In a message `[x]` may be absent, `(x|y)` is one of several, and `\u0024{…}` is a value.',
    '',
    ...drawnMessages,
    `## Pages: ${PAGES} of ${documents.length}`,
    '',
    PAGES_TASK,
    ...drawn(documents, PAGES, 3).map(file => `* ${file}: “${titleOf(tree.read(file))}”`),
  ].join('\n')
}

/** Returns the first heading of a page. */
function titleOf(page: string): string {
  return /^# (.*)/m.exec(page)?.[1] ?? 'no title'
}

function isWhole(message: string): boolean {
  return (
    message
      .replaceAll(/\$\{.*?\}/g, 'value')
      .split(/\s+/)
      .filter(word => /[\p{L}\d]/u.test(word)).length >= 4
  )
}

/** Draws `count` items of a list at random. Draws with different `stream` numbers do not depend on each other. */
function drawn<T>(list: readonly T[], count: number, stream: number): T[] {
  const generator = xoroshiro128plus((seed + Math.imul(stream, 0x9e3779b1)) | 0)
  // Skips the first numbers, which are similar for neighbouring seeds.
  for (let i = 0; i < 16; i++) generator.next()
  const left = [...list]
  return Array.from({ length: Math.min(count, left.length) }, () => {
    const at = Math.floor(((generator.next() >>> 0) / 2 ** 32) * left.length)
    return left.splice(at, 1)[0]!
  })
}

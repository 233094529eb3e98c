/**
 * Draws what a stranger reads to measure whether the words of this project are understood at once. Prints one document.
 *
 *   npm run --silent words:draw -- --seed 1                  of the files as they are now
 *   npm run --silent words:draw -- --seed 1 --at <commit>    as they were
 *
 * How it is measured. An engineer who knows Node and Redis, and has never seen this code, is given the document and nothing
 * else. For each comment and each message the reader writes down in own words what it means, after one reading, and marks
 * where a second reading was needed. Somebody who knows the code compares: an item fails if its meaning was missed, or if
 * it was marked. For each page three questions are made up that a newcomer would bring to it; the reader answers them from
 * the page. The aims: of 60 comments at most 3 fail, of 30 messages none, and all answers are right.
 *
 * The draw follows from the seed and the files alone. Each comment in the sources is as likely as any other, whichever file
 * it is in; so is each message of scripts/words/messages.ts that
 * has four words, and each page: shorter ones are names of columns and the like, which mean nothing alone. A new measurement takes a new seed: the words
 * that an earlier draw has shown may have been mended because of it.
 */
import { parseArgs } from 'node:util'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { commented, commentsIn } from './comments.ts'
import { messagesOf } from './table.ts'
import { type Tree, withTree } from './tree.ts'

const COMMENTS = 60
const MESSAGES = 30
const PAGES = 6

/** Longer than those that a comment may contain. */
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
  const drawnComments = drawn(comments, COMMENTS, 1).map(({ file, line, text, code }, i) =>
    [`### ${i + 1}. ${file}:${line}`, '', FENCE, text, FENCE, '', 'code', '', FENCE, ...code, FENCE, ''].join('\n'),
  )
  const drawnMessages = drawn(messages, MESSAGES, 2).map(({ file, line, kind, detail, text }, i) =>
    [`### ${i + 1}. ${kind}${detail && ` (${detail})`}, ${file}:${line}`, '', FENCE, text.trim(), FENCE, ''].join('\n'),
  )
  return [
    `# A draw of words, seed ${seed}`,
    '',
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
    ...drawn(documents, PAGES, 3).map(file => `* ${file}`),
  ].join('\n')
}

function isWhole(message: string): boolean {
  return (
    message
      .replaceAll(/\$\{.*?\}/g, 'value')
      .split(/\s+/)
      .filter(word => /[\p{L}\d]/u.test(word)).length >= 4
  )
}

/** So many of a list, each as likely as any other, in the order of the draw. Each `stream` is drawn independently. */
function drawn<T>(list: readonly T[], count: number, stream: number): T[] {
  const generator = xoroshiro128plus((seed + Math.imul(stream, 0x9e3779b1)) | 0)
  // The first numbers of neighbouring seeds are much alike.
  for (let i = 0; i < 16; i++) generator.next()
  const left = [...list]
  return Array.from({ length: Math.min(count, left.length) }, () => {
    const at = Math.floor(((generator.next() >>> 0) / 2 ** 32) * left.length)
    return left.splice(at, 1)[0]!
  })
}

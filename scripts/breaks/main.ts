/**
 * Breaks each line that a test of the fault matrix names as the line it guards, and checks that the test then fails.
 *
 *  npm run test:breaks                                       all breaks, one after another
 *  npm run test:breaks -- test/topology/faults               the breaks of one folder
 *  npm run test:breaks -- test/fault/messages.test.ts        of one file
 *  npm run test:breaks -- test/fault/messages.test.ts:270    of one test
 *
 * The program works on a copy of the project, where the unchanged tests must pass first. The exit code is 1 if a test
 * passes although its line is broken. Any failure of the test counts, so compare the printed message with what the
 * comment predicts.
 */
import { stripVTControlCharacters } from 'node:util'
import { type Break, troubleOf } from './comments.ts'
import { Copy, type Report } from './copy.ts'
import { argsFor, type Folder, folders, guardedIn } from './guarded.ts'

/** Returns the message of the first failing test. */
function sawIn({ testResults }: Report): string {
  const [message = ''] = testResults.flatMap(file => file.assertionResults.flatMap(one => one.failureMessages))
  return stripVTControlCharacters(message).split('\n', 1)[0]!
}

function verdictOf(report: Report | undefined): { found: boolean; saw: string } {
  if (!report) return { found: false, saw: 'the scripts cannot be built, or the test runner gave no report' }
  const { numFailedTests, numPassedTests } = report
  if (numFailedTests > 0) return { found: true, saw: sawIn(report) }
  return { found: false, saw: numPassedTests > 0 ? 'the tests passed' : 'no test ran' }
}

function nameOf({ file, line }: Break): string {
  return `${file}:${line}`
}

/** Tries each break in turn, and returns how many of them no test noticed. */
async function breakAll(copy: Copy, folder: Folder, breaks: readonly Break[]): Promise<number> {
  const whole = await copy.run(argsFor(folder, new Set(breaks.map(nameOf))), [])
  if (!whole || whole.numFailedTests > 0 || whole.numPassedTests === 0) {
    throw new Error(`unbroken, the tests do not pass: ${whole ? sawIn(whole) : 'no report'}`)
  }
  let missed = 0
  for (const each of breaks) {
    const { found, saw } = verdictOf(await copy.run(argsFor(folder, [nameOf(each)]), each.changes))
    if (!found) missed += 1
    const broken = each.changes.map(({ path, from, to }) => `  ${path}: ${from} → ${to}`)
    console.log([`${found ? 'found' : 'MISSED'}  ${nameOf(each)}`, ...broken, `  ${saw}`].join('\n'))
  }
  return missed
}

const asked = process.argv.slice(2)
const chosen = folders.map(folder => {
  const breaks = guardedIn(folder).flatMap(({ breaks }) => breaks)
  const names = (each: Break) => [folder, each.file, nameOf(each)]
  return { folder, breaks: breaks.filter(each => asked.length === 0 || names(each).some(name => asked.includes(name))) }
})
const all = chosen.flatMap(({ breaks }) => breaks)
const impossible = all.flatMap(each => troubleOf(each)?.concat(` (${nameOf(each)})`) ?? [])
if (all.length === 0) impossible.push('nothing to break there')
if (impossible.length > 0) {
  console.error(impossible.join('\n'))
  process.exit(1)
}

const copy = await Copy.make()
let missed = 0
try {
  for (const { folder, breaks } of chosen) if (breaks.length > 0) missed += await breakAll(copy, folder, breaks)
} finally {
  await copy.remove()
}
console.log(`${all.length - missed} of ${all.length} breaks found`)
process.exitCode = missed === 0 ? 0 : 1

// Reads the JSON report of the test run and prints the verdict of the whole check as its last line.
// A skipped test counts as a failure: here every server that a test needs can be had.
import { existsSync, readFileSync } from 'node:fs'

const [file, otherFailures] = process.argv.slice(2)
if (!existsSync(file)) {
  console.log('the tests left no report')
  console.log('0 passed, 1 failed')
  process.exit(1)
}
const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, success } = JSON.parse(
  readFileSync(file, 'utf8'),
)
const skipped = numPendingTests + numTodoTests
if (skipped > 0) console.log(`${skipped} tests were skipped`)
const failed = numFailedTests + skipped
const good = success && failed === 0 && numPassedTests > 0 && otherFailures === '0'
if (otherFailures !== '0') console.log('a step above failed')
console.log(`${numPassedTests} passed, ${failed} failed`)
process.exit(good ? 0 : 1)

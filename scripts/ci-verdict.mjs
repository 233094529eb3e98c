// Takes the names of the failed steps and the JSON reports of the test runs. Prints each failure with its reason, the
// failed steps, and the overall verdict as the last line, so that the end of a long log shows what failed. A skipped
// test counts as a failure, because every server
// that the tests need is available where this script runs.
import { existsSync, readFileSync } from 'node:fs'

const [steps, ...files] = process.argv.slice(2)
let passed = 0
let failed = 0
for (const file of files) {
  if (!existsSync(file)) {
    console.log(`${file} is missing: its tests did not run to their end`)
    failed += 1
    continue
  }
  const report = JSON.parse(readFileSync(file, 'utf8'))
  const skipped = report.numPendingTests + report.numTodoTests
  if (skipped > 0) console.log(`${file}: ${skipped} tests were skipped`)
  passed += report.numPassedTests
  failed += report.numFailedTests + skipped
  // If a test file cannot be loaded, the report says that the run failed, but counts no failed test.
  if (!report.success && report.numFailedTests === 0) failed += 1
  for (const { name, status, message, assertionResults } of report.testResults) {
    if (status === 'failed' && message) console.log(`FAILED ${name}\n${shortened(message)}`)
    for (const test of assertionResults) {
      if (test.status === 'passed') continue
      console.log(
        `${test.status.toUpperCase()} ${name} > ${test.fullName}\n${shortened(test.failureMessages.join('\n'))}`,
      )
    }
  }
}
if (steps !== '') console.log(`failed steps: ${steps}`)
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed === 0 && passed > 0 && steps === '' ? 0 : 1)

function shortened(message) {
  return message.split('\n').slice(0, 25).join('\n')
}

/**
 * Writes the reports of the public surface, and prints what doc comments lack. A test checks that the reports are up to
 * date, and that doc comments lack nothing.
 *
 *   npm run api
 */
import { writeFile } from 'node:fs/promises'
import { stale, surface } from './surface.ts'

const root = new URL('../../', import.meta.url)
const current = await surface()
for (const complaint of current.complaints) console.error(complaint)
for (const path of await stale(current)) {
  await writeFile(new URL(path, root), current.reports.get(path)!)
  console.log(`wrote ${path}`)
}
if (current.complaints.length > 0) process.exitCode = 1

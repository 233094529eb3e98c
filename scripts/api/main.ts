/**
 * Writes docs/api/ and the reports of the public surface from the doc comments. A test compares them with the sources.
 *
 *   npm run api
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { reference, stale } from './reference.ts'

const root = new URL('../../', import.meta.url)
const current = await reference()
for (const complaint of current.complaints) console.error(complaint)
for (const path of await stale(current)) {
  const file = new URL(path, root)
  await mkdir(new URL('./', file), { recursive: true })
  await writeFile(file, current.files.get(path)!)
  console.log(`wrote ${path}`)
}
if (current.complaints.length > 0) process.exitCode = 1

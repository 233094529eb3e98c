import { readdirSync } from 'node:fs'

/** Returns the test files of a folder of the project, sorted by name, as paths for the test runner. */
export function testFilesIn(folder: string): string[] {
  const names = readdirSync(new URL(`../${folder}`, import.meta.url)).filter(name => name.endsWith('.test.ts'))
  return names.sort().map(name => `${folder}/${name}`)
}

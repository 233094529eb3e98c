/** Finds the tests whose comments say which line to break. */
import { readFileSync } from 'node:fs'
import { testFilesIn } from '../test-files.ts'
import { type Break, breaksIn, root } from './comments.ts'

/** Folders of tests, with the test runner's arguments to run them. */
const guarded = {
  'test/fault': ['--project', 'faults'],
  'test/fault/quorum': ['--project', 'faults'],
  'test/topology/faults': ['--project', 'failovers'],
}

export type Folder = keyof typeof guarded
export const folders = Object.keys(guarded) as Folder[]

export interface Guarded {
  readonly file: string
  readonly text: string
  readonly breaks: readonly Break[]
}

/** Returns all test files of a folder. */
export function guardedIn(folder: Folder): Guarded[] {
  return testFilesIn(folder).map(file => {
    const text = readFileSync(new URL(file, root), 'utf8')
    return { file, text, breaks: breaksIn(file, text) }
  })
}

/** Returns the test runner's arguments for these tests of a folder, each given as a file and its line. */
export function argsFor(folder: Folder, tests: Iterable<string>): string[] {
  return [...guarded[folder], ...tests]
}

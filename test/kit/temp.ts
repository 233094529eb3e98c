import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** The path of an empty folder outside the project, removed after the test. */
export async function emptyFolder(): Promise<string> {
  const folder = await lastingFolder()
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** The path of an empty folder outside the project, which the caller removes. */
export async function lastingFolder(): Promise<string> {
  return mkdtemp(join(await realpath(tmpdir()), 'redis-baton-test-'))
}

import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** Makes an empty folder outside the project, and returns its path. The folder is removed after the test. */
export async function emptyFolder(): Promise<string> {
  const folder = await lastingFolder()
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** Makes an empty folder outside the project, and returns its path. The caller must remove the folder. */
export async function lastingFolder(): Promise<string> {
  return mkdtemp(join(await realpath(tmpdir()), 'redis-baton-test-'))
}

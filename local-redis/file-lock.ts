import { spawn } from 'node:child_process'
import { once } from 'node:events'

const lockedWithinMs = 300_000

/**
 * Runs `task` while holding the kernel's lock on `file`. A lock file of our own would be left behind if its holder were
 * killed. The kernel's lock is held by a `cat` process. That process ends when its input, a pipe from this process, is
 * closed.
 */
export async function withFileLock<T>(file: string, task: () => Promise<T>): Promise<T> {
  const seconds = String(lockedWithinMs / 1000)
  const holder = spawn('flock', ['--wait', seconds, file, 'sh', '-c', 'echo held; exec cat'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const ended = once(holder, 'close')
  try {
    const held = await Promise.race([once(holder.stdout, 'data').then(() => true), ended.then(() => false)])
    if (!held)
      throw new Error(
        `another process has held the lock on the file ${file} for ${seconds} s; find it with fuser ${file}, end it, and try again`,
      )
    return await task()
  } finally {
    holder.stdin.end()
    await ended
  }
}

/** An interactive shell in a terminal, in which `baton` is a program like any other. */
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { redisUrl } from '../../kit/redis.ts'
import { emptyFolder } from '../../kit/temp.ts'
import { built, Terminal, type TerminalOptions } from './tmux.ts'

export const PROMPT = 'ready>'

/** Opens Bash without the user's settings. Bash runs `lines` before its first prompt. */
export async function bash(lines: readonly string[] = [], options: TerminalOptions = {}): Promise<Terminal> {
  const folder = await folderWithBaton()
  const startup = join(folder, 'startup')
  // Text typed here must not appear in the user's history.
  await writeFile(startup, ['unset HISTFILE', `PS1='${PROMPT} '`, ...lines, ''].join('\n'))
  const terminal = await Terminal.open(['bash', '--noprofile', '--rcfile', startup, '-i'], {
    ...options,
    env: { REDIS_URL: redisUrl(), PATH: `${folder}:${process.env['PATH']}`, ...options.env },
  })
  await terminal.eventually(PROMPT)
  return terminal
}

/** Makes a folder that contains the built `baton` as an executable. The folder is removed after the test. */
export async function folderWithBaton(): Promise<string> {
  const folder = await emptyFolder()
  const file = join(folder, 'baton')
  await writeFile(file, `#!/bin/sh\nexec '${process.execPath}' '${built}' "$@"\n`)
  await chmod(file, 0o755)
  return folder
}

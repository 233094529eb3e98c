/** An interactive shell in a terminal, in which `baton` is a program like any other. */
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { redisUrl } from '../../kit/redis.ts'
import { emptyFolder } from '../../kit/temp.ts'
import { built, Terminal, type TerminalOptions } from './tmux.ts'

export const PROMPT = 'ready>'

/** Bash without anybody's settings. `lines` are run before it asks for more. */
export async function bash(lines: readonly string[] = [], options: TerminalOptions = {}): Promise<Terminal> {
  const folder = await folderWithBaton()
  const startup = join(folder, 'startup')
  // What is typed here stays out of the history of whoever runs the test.
  await writeFile(startup, ['unset HISTFILE', `PS1='${PROMPT} '`, ...lines, ''].join('\n'))
  const terminal = await Terminal.open(['bash', '--noprofile', '--rcfile', startup, '-i'], {
    ...options,
    env: { REDIS_URL: redisUrl(), PATH: `${folder}:${process.env['PATH']}`, ...options.env },
  })
  await terminal.eventually(PROMPT)
  return terminal
}

/** A folder with a program `baton`, which is the built one; removed after the test. */
export async function folderWithBaton(): Promise<string> {
  const folder = await emptyFolder()
  const file = join(folder, 'baton')
  await writeFile(file, `#!/bin/sh\nexec '${process.execPath}' '${built}' "$@"\n`)
  await chmod(file, 0o755)
  return folder
}

import { execFile } from 'node:child_process'
import { basename } from 'node:path'

export interface CommandOptions {
  readonly timeoutMs: number
  readonly env?: NodeJS.ProcessEnv
  readonly cwd?: string
}

const tailLines = 8

/**
 * Runs a command to its end and returns its output. The error of a failed command contains the last lines of its
 * output.
 */
export function run(file: string, args: readonly string[], { timeoutMs, env, cwd }: CommandOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = {
      timeout: timeoutMs,
      cwd,
      killSignal: 'SIGKILL' as const,
      maxBuffer: 16 * 1024 * 1024,
      env: { ...process.env, LC_ALL: 'C', ...env },
    }
    execFile(file, args, options, (error, stdout, stderr) => {
      if (!error) return resolve(stdout)
      const outcome = error.killed ? `did not finish within ${timeoutMs / 1000} s` : `failed (${error.code})`
      const tail = `${stdout}${stderr}`.trimEnd().split('\n').slice(-tailLines).join('\n')
      reject(new Error(`${basename(file)} ${args.at(-1) ?? ''} ${outcome}\n${tail}`.trimEnd()))
    })
  })
}

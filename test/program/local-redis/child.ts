import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export interface Child {
  readonly process: ChildProcess
  /** The lines that the child prints, oldest first. The iterator ends with the process. */
  readonly lines: AsyncIterator<string>
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

/** Runs one of the programs in children/ in a process of its own. */
export function runChild(program: string, words: string[] = [], env: NodeJS.ProcessEnv = {}): Child {
  const file = fileURLToPath(new URL(`children/${program}`, import.meta.url))
  const child = spawn(process.execPath, ['--import', 'tsx', file, ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...env },
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>(resolve =>
    child.once('exit', (code, signal) => resolve({ code, signal })),
  )
  return { process: child, lines, ended }
}

/** Extracts the path in parentheses at the end of a server's description. */
export function binaryIn(description: string): string {
  const path = /\((.*)\)$/.exec(description)?.[1]
  if (path === undefined) throw new Error(`no path in "${description}"`)
  return path
}

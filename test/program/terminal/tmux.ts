/**
 * A real terminal for a test: the program runs in a pane of tmux and receives keys, and the test checks the screen.
 *
 * Each terminal has its own tmux server, with a socket in a folder of its own, so that nothing is shared with the
 * user's tmux or with another test. The server must not outlive the test, however the test ends. So a guard process, a
 * shell, reads from a pipe to which nobody writes. The pipe is closed after the test, or when this process ends. The
 * guard then ends the server:
 *
 *      this process ──pipe──> sh: waits until the pipe is closed, then tmux kill-server
 *           └──────tmux───────> server ──> pane: the program
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'
import { eventually, sleep } from '../../kit/time.ts'

export interface TerminalOptions {
  /** Size in characters. Default: 80 × 24. */
  readonly columns?: number
  readonly rows?: number
  /** Variables to add to the environment of this process. The value undefined removes a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly cwd?: string
}

export interface Cursor {
  /** The row of the cursor, from 0 at the top. */
  readonly row: number
  readonly column: number
  readonly visible: boolean
}

/** What the screen should show: a part of it, a pattern, or a predicate. */
export type Expected = string | RegExp | ((screen: string) => boolean)

/** The program that `npm run build` has made. */
export const built = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url))

const settings = `
set -g status off
set -g default-terminal tmux-256color
set -g remain-on-exit on
set -gq remain-on-exit-format ''
`

/**
 * Variables that a test runner or an enclosing terminal may have set. They are removed, because they change what a
 * program assumes about its terminal.
 */
const foreign = ['CI', 'NO_COLOR', 'FORCE_COLOR', 'COLORTERM', 'TMUX', 'TMUX_PANE', 'COLUMNS', 'LINES']

/** How long `eventually` and `exitCode` wait, in ms. Generous: Node takes a second to start on a busy machine. */
const PATIENCE = 15_000
/** Time between two readings of the screen, in ms. */
const LOOK = 30

const run = promisify(execFile)

export function batonInTerminal(args: readonly string[], options?: TerminalOptions): Promise<Terminal> {
  return Terminal.open([process.execPath, built, ...args], options)
}

export class Terminal {
  readonly #socket: string
  readonly #recorded: string

  private constructor(folder: string) {
    this.#socket = join(folder, 'socket')
    this.#recorded = join(folder, 'output')
  }

  /** Opens a terminal and runs `command` in it. After the test, the terminal and the programs in it are ended. */
  static async open(command: readonly string[], options: TerminalOptions = {}): Promise<Terminal> {
    const { columns = 80, rows = 24, env = {}, cwd = process.cwd() } = options
    const folder = await mkdtemp(join(tmpdir(), 'baton-terminal-'))
    const terminal = new Terminal(folder)
    const guard = spawn('/bin/sh', ['-c', 'cat; exec tmux -S "$0" kill-server', terminal.#socket], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    })
    onTestFinished(async () => {
      const programs = await terminal.#ask('#{pane_pid}').catch(() => '')
      const ended = once(guard, 'exit')
      guard.stdin.end()
      await ended
      if (programs) end(Number(programs))
      await rm(folder, { recursive: true, force: true })
    })

    const config = join(folder, 'tmux.conf')
    await writeFile(config, settings)
    const size = ['-x', String(columns), '-y', String(rows)]
    const record = [';', 'pipe-pane', `exec cat >>'${terminal.#recorded}'`]
    const start = ['-u', '-f', config, 'new-session', '-d', ...size, '-c', cwd, '--', ...command, ...record]
    await terminal.#tmux(start, {
      ...process.env,
      ...Object.fromEntries(foreign.map(name => [name, undefined])),
      ...env,
    })
    return terminal
  }

  /** Presses keys, given by tmux's names (`Enter`, `C-c`, `Up`, `Escape`, `Tab`) or as single characters. */
  async press(...keys: readonly string[]): Promise<void> {
    await this.#tmux(['send-keys', '--', ...keys])
  }

  /** Types the text as it is, without Enter. */
  async type(text: string): Promise<void> {
    await this.#tmux(['send-keys', '-l', '--', text])
  }

  async enter(text: string): Promise<void> {
    await this.type(text)
    await this.press('Enter')
  }

  /** Changes the size; the program receives SIGWINCH. */
  async resize(columns: number, rows: number): Promise<void> {
    await this.#tmux(['resize-window', '-x', String(columns), '-y', String(rows)])
  }

  /** Returns all rows of the screen, without trailing blanks and without empty rows at the bottom. */
  async screen(): Promise<string> {
    const rows = (await this.#tmux(['capture-pane', '-p'])).split('\n').map(row => row.trimEnd())
    return rows.join('\n').trimEnd()
  }

  /** Returns the screen with colours and other attributes as escape sequences. */
  async colouredScreen(): Promise<string> {
    return (await this.#tmux(['capture-pane', '-p', '-e'])).trimEnd()
  }

  /** Returns everything that the program has written since its start, byte by byte. */
  output(): Promise<string> {
    return readFile(this.#recorded, 'utf8')
  }

  async cursor(): Promise<Cursor> {
    const [row, column, flag] = (await this.#ask('#{cursor_y} #{cursor_x} #{cursor_flag}')).split(' ').map(Number)
    return { row: row!, column: column!, visible: flag === 1 }
  }

  /**
   * Waits until the screen is as expected, and returns it. If this takes more than `limit` ms, fails with the last
   * screen.
   */
  async eventually(expected: Expected, limit: number = PATIENCE): Promise<string> {
    const end = performance.now() + limit
    for (;;) {
      const screen = await this.screen()
      if (matches(screen, expected)) return screen
      if (performance.now() > end) throw new Error(`no ${expected} within ${limit} ms on the screen:\n${screen}`)
      await sleep(LOOK)
    }
  }

  async pid(): Promise<number> {
    return Number(await this.#ask('#{pane_pid}'))
  }

  /**
   * Waits for the program's end. Resolves to its exit code, or to 128 plus the number of the signal that ended it. The
   * screen stays readable.
   */
  exitCode(limit: number = PATIENCE): Promise<number> {
    const ending = async () => {
      const [dead, status, signal] = (await this.#ask('#{pane_dead},#{pane_dead_status},#{pane_dead_signal}')).split(
        ',',
      )
      if (status || signal) return { code: signal ? 128 + Number(signal) : Number(status) }
      // `pane_dead` shows that the program's output has ended. But tmux may have missed the end of the program itself.
      // Tmux checks all its child processes again when any of them ends. So start one that ends at once.
      if (dead === '1') await this.#tmux(['run-shell', 'true'])
      return undefined
    }
    return eventually(ending, limit).then(
      ending => (ending as { code: number }).code,
      async () => Promise.reject(new Error(`it has not ended within ${limit} ms:\n${await this.screen()}`)),
    )
  }

  async #ask(format: string): Promise<string> {
    return (await this.#tmux(['display-message', '-p', format])).trim()
  }

  async #tmux(args: readonly string[], env?: NodeJS.ProcessEnv): Promise<string> {
    try {
      return (await run('tmux', ['-S', this.#socket, ...args], { env: env ?? process.env, maxBuffer: 2 ** 24 })).stdout
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      throw new Error('tmux is not installed; install it by the package of that name: apt, dnf or brew install tmux')
    }
  }
}

function matches(screen: string, expected: Expected): boolean {
  if (typeof expected === 'string') return screen.includes(expected)
  return expected instanceof RegExp ? expected.test(screen) : expected(screen)
}

/** Kills a process that has survived the closing of its terminal. */
function end(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The process has already ended.
  }
}

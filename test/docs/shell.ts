/** Runs the shell blocks of pages, with the real `baton` program and with stand-ins for the reader's own programs. */
import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { printedBy } from '../kit/printed.ts'

export interface Ended {
  /** The exit code of the script; null if a signal ended the script. */
  readonly code: number | null
  readonly output: string
  readonly errors: string
}

const program = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

/**
 * Stand-ins for the programs that blocks call. `baton top` and `baton ui` run until the user ends them. So the stand-in
 * for `baton` ends them once they have shown something: it types the key `q` in the terminal of `top`, and sends SIGINT
 * to `ui`, as Ctrl-C does.
 */
const programs: Record<string, string> = {
  npx: 'exec "$@"',
  baton: `
node='${process.execPath}' program='${program}'
case " $* " in *" --once "*|*" --json "*|*" --help "*) exec "$node" "$program" "$@" ;; esac
[ "$1" = top ] || [ "$1" = ui ] || exec "$node" "$program" "$@"
shown=$(mktemp)
waitForIt() {
  for _ in $(seq 100); do [ -s "$shown" ] && return; sleep 0.1; done
}
code=0
if [ "$1" = top ]; then
  { waitForIt; sleep 0.5; printf q; } | script -qefc "stty cols 80 rows 24; '$node' '$program' $*" "$shown" >/dev/null || code=$?
else
  "$node" "$program" "$@" >"$shown" &
  waitForIt
  kill -INT $!
  wait $! || code=$?
  cat "$shown"
fi
[ -s "$shown" ] || { echo "it has shown nothing" >&2; exit 1; }
rm "$shown"
[ $code = 130 ] || exit $code`,
}
/** The reader's own scripts, which blocks run under a lock. Each block finds stand-ins for them in its folder. */
const scripts = ['report.sh', 'import.sh', 'deploy.sh', 'backup.sh']

export class Shell {
  readonly #url: string

  constructor(url: string) {
    this.#url = url
  }

  /**
   * Runs each script in its own folder. Afterwards, the processes that the script started are ended, and the folder is
   * removed.
   */
  run(script: string, name = 'script'): Promise<Ended> {
    const folder = mkdtempSync(join(tmpdir(), 'redis-baton-docs-'))
    const [work, bin] = [join(folder, 'work'), join(folder, 'bin')]
    for (const each of [work, bin]) mkdirSync(each)
    for (const [file, text] of Object.entries(programs)) executable(join(bin, file), text)
    for (const file of scripts) executable(join(work, file), `\necho "${file} is done"`)
    // The caller chooses the name of the script's file, because the shell puts this name into its error messages.
    writeFileSync(join(folder, name), script)

    const child = spawn('sh', ['-eu', join('..', name)], {
      cwd: work,
      // The script has a process group of its own, so that all its processes can be ended together.
      detached: true,
      env: { ...process.env, REDIS_URL: this.#url, PATH: `${bin}${delimiter}${process.env['PATH']}`, NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const printed = printedBy(child)
    const toGroup = (signal: NodeJS.Signals) => {
      try {
        process.kill(-child.pid!, signal)
      } catch {} // thrown when all processes of the script have ended
    }
    // The command of a `baton run` has a process group of its own, so a signal to the script's group does not reach it.
    // If `baton run` has not ended yet, it forwards SIGTERM to the command's group, but it cannot forward SIGKILL. So
    // SIGTERM is sent first.
    const endGroup = () => {
      toGroup('SIGTERM')
      const last = setTimeout(() => toGroup('SIGKILL'), 10_000)
      child.once('close', () => clearTimeout(last))
    }
    const cleanUp = () => {
      toGroup('SIGKILL')
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    }
    process.once('exit', cleanUp)
    return new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', endGroup)
      child.once('close', code => {
        process.off('exit', cleanUp)
        cleanUp()
        resolve({ code, ...printed })
      })
    })
  }
}

function executable(path: string, text: string): void {
  writeFileSync(path, `#!/bin/sh\n${text.trimStart()}\n`)
  chmodSync(path, 0o755)
}

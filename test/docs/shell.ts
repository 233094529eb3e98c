/** Runs the shell blocks of pages: with the real program, and stand-ins for what a reader would run with it. */
import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { printedBy } from '../kit/printed.ts'

export interface Ended {
  /** Exit code; null: it was killed. */
  readonly code: number | null
  readonly output: string
  readonly errors: string
}

const program = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

/**
 * What blocks call. `top` and `ui` last until their user ends them: so does this, when they have shown something, by `q` on
 * a terminal of its own and by Ctrl-C.
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
/** What blocks run under a lock: scripts in the folder in which they are run. */
const scripts = ['report.sh', 'import.sh', 'deploy.sh', 'backup.sh']

export class Shell {
  readonly #url: string

  constructor(url: string) {
    this.#url = url
  }

  /** Each in a folder of its own. What it has started and not ended is ended; nothing of it is left. */
  run(script: string, name = 'script'): Promise<Ended> {
    const folder = mkdtempSync(join(tmpdir(), 'redis-baton-docs-'))
    const [work, bin] = [join(folder, 'work'), join(folder, 'bin')]
    for (const each of [work, bin]) mkdirSync(each)
    for (const [file, text] of Object.entries(programs)) executable(join(bin, file), text)
    for (const file of scripts) executable(join(work, file), `\necho "${file} is done"`)
    // The shell tells errors with the name of its file and the line.
    writeFileSync(join(folder, name), script)

    const child = spawn('sh', ['-eu', join('..', name)], {
      cwd: work,
      // A process group of its own, which is what is ended.
      detached: true,
      env: { ...process.env, REDIS_URL: this.#url, PATH: `${bin}${delimiter}${process.env['PATH']}`, NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const printed = printedBy(child)
    const toGroup = (signal: NodeJS.Signals) => {
      try {
        process.kill(-child.pid!, signal)
      } catch {} // all have ended
    }
    // The command of a `baton run` that is still there has a group of its own: SIGTERM goes on to it.
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

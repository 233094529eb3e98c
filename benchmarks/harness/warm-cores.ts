/**
 * Keeps the cores awake with one busy loop per core. A halted virtual core takes 50 to 100 µs to wake up. This time
 * differs from run to run, and is longer than a hand-off. The cores of a busy production machine rarely halt. The loops
 * run in the scheduling class SCHED_IDLE, so a loop runs only while its core has nothing else to do.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

export interface WarmCores {
  /** Why the cores are not kept awake; undefined if they are kept awake. */
  readonly refused: string | undefined
  stop(): void
}

/** A shell loop that ends when its parent process has ended. */
const burn = `while kill -0 "$PPID" 2>/dev/null; do i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; done`

const schedIdle = 5
const startWithin = 2_000

export async function warmCores(): Promise<WarmCores> {
  const loops = Array.from({ length: availableParallelism() }, () =>
    spawn('chrt', ['--idle', '0', 'sh', '-c', burn], { stdio: 'ignore' }),
  )
  for (const loop of loops) loop.on('error', () => {}) // if chrt is missing, the checks below notice it
  const stop = () => {
    for (const loop of loops) loop.kill('SIGKILL')
  }
  const deadline = Date.now() + startWithin
  while (Date.now() < deadline) {
    if (loops.every(isIdleClass)) return { refused: undefined, stop }
    if (loops.some(({ pid, exitCode }) => pid === undefined || exitCode !== null)) break
    await sleep(20)
  }
  stop() // a loop that does not run in SCHED_IDLE takes processor time from the benchmark
  return { refused: 'chrt (util-linux) is missing or SCHED_IDLE is not allowed', stop }
}

/** Returns whether the loop already runs in SCHED_IDLE. `chrt` takes a moment to set this scheduling class. */
function isIdleClass({ pid }: ChildProcess): boolean {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[38]) === schedIdle
  } catch {
    return false
  }
}

/**
 * One busy loop a core, of the scheduling class SCHED_IDLE: it runs only while the core has nothing else to do, and
 * gives way at once. A virtual core that halts needs 50 to 100 µs to wake up, which is more than a hand-off takes, and
 * differs from run to run; a core that never halts is what a busy production machine has.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

export interface WarmCores {
  /** Why the cores are not kept warm. */
  readonly refused: string | undefined
  stop(): void
}

/** Looks now and then whether its parent is still there: it must not outlive it, whichever way that ends. */
const burn = `while kill -0 "$PPID" 2>/dev/null; do i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; done`

const schedIdle = 5
const startWithin = 2_000

export async function warmCores(): Promise<WarmCores> {
  const loops = Array.from({ length: availableParallelism() }, () =>
    spawn('chrt', ['--idle', '0', 'sh', '-c', burn], { stdio: 'ignore' }),
  )
  for (const loop of loops) loop.on('error', () => {}) // there is no chrt, which is seen below
  const stop = () => {
    for (const loop of loops) loop.kill('SIGKILL')
  }
  const deadline = Date.now() + startWithin
  while (Date.now() < deadline) {
    if (loops.every(isIdleClass)) return { refused: undefined, stop }
    if (loops.some(({ pid, exitCode }) => pid === undefined || exitCode !== null)) break
    await sleep(20)
  }
  stop() // without the class they would take time from what is measured
  return { refused: 'chrt (util-linux) is missing or SCHED_IDLE is not allowed', stop }
}

/** By what the kernel says, as `chrt` sets the class of itself and then becomes the loop. */
function isIdleClass({ pid }: ChildProcess): boolean {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[38]) === schedIdle
  } catch {
    return false
  }
}

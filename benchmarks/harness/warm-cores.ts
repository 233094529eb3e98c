/**
 * One busy loop per core, in the scheduling class SCHED_IDLE: it runs only while the core has nothing else to do, and
 * gives way at once. A halted virtual core needs 50 to 100 µs to wake up. That is more than a hand-off takes, and it
 * varies from run to run. The cores of a busy production machine never halt.
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

/** Checks regularly whether its parent still exists, so that it cannot outlive it, however it ends. */
const burn = `while kill -0 "$PPID" 2>/dev/null; do i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; done`

const schedIdle = 5
const startWithin = 2_000

export async function warmCores(): Promise<WarmCores> {
  const loops = Array.from({ length: availableParallelism() }, () =>
    spawn('chrt', ['--idle', '0', 'sh', '-c', burn], { stdio: 'ignore' }),
  )
  for (const loop of loops) loop.on('error', () => {}) // chrt is missing, which is noticed below
  const stop = () => {
    for (const loop of loops) loop.kill('SIGKILL')
  }
  const deadline = Date.now() + startWithin
  while (Date.now() < deadline) {
    if (loops.every(isIdleClass)) return { refused: undefined, stop }
    if (loops.some(({ pid, exitCode }) => pid === undefined || exitCode !== null)) break
    await sleep(20)
  }
  stop() // without this class, the loops would take time from what is measured
  return { refused: 'chrt (util-linux) is missing or SCHED_IDLE is not allowed', stop }
}

/** Asks the kernel, because `chrt` sets its own class and then becomes the loop. */
function isIdleClass({ pid }: ChildProcess): boolean {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[38]) === schedIdle
  } catch {
    return false
  }
}

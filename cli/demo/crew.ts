/**
 * Runs the worker processes: starts them, exchanges messages with them, and ends them in every way that the demo needs.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { programFile } from '../../local-redis/package-root.ts'
import type { FromWorker, ToWorker } from './messages.ts'
import type { Order } from './orders.ts'

export interface Worker {
  /** The worker's number. The process that replaces a killed worker has the same number and label. */
  readonly place: number
  readonly label: string
  readonly pid: number
  /** Orders that the worker was given and has not answered. */
  readonly inHand: Map<string, Order>
  state: 'starting' | 'working' | 'frozen' | 'killed' | 'closing'
  answered: number
  send(message: ToWorker): void
  signal(name: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void
  /** Resolves when the process has ended and its last message has been read. */
  readonly ended: Promise<void>
}

export interface Listener {
  heard(worker: Worker, message: FromWorker): void
  /** Called when a worker has ended unexpectedly. */
  died(worker: Worker, how: string): void
}

const program = programFile('cli/demo/worker')

export function hire(place: number, listener: Listener): Worker {
  const child = fork(program, { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  let complaint = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(-2_000)
  })
  const worker: Worker = {
    place,
    label: `W${place + 1}`,
    pid: child.pid ?? 0,
    inHand: new Map(),
    state: 'starting',
    answered: 0,
    // Messages to an ended process are dropped. `died` and `ended` report the end.
    send: message => void (child.connected && child.send(message, () => {})),
    signal: name => void child.kill(name),
    ended: ending(child),
  }
  child.on('message', message => listener.heard(worker, message as FromWorker))
  child.on('error', error => listener.died(worker, error.message))
  child.on('exit', (code, signal) => {
    if (worker.state === 'killed' || worker.state === 'closing') return
    listener.died(worker, `${signal ?? `exit code ${code}`}${complaint && `\n${complaint}`}`)
  })
  return worker
}

function ending(child: ChildProcess): Promise<void> {
  return new Promise(resolve => {
    if (child.pid === undefined) return resolve() // the worker never started; the error event reports why
    let open = 2
    const one = () => {
      open -= 1
      if (open === 0) resolve()
    }
    child.once('exit', one)
    child.once('disconnect', one)
  })
}

/** Makes every worker finish and leave. Kills the workers that have not left within `patience` ms. */
export async function dismiss(crew: readonly Worker[], patience: number): Promise<void> {
  const left = Promise.all(crew.map(worker => worker.ended))
  for (const worker of crew) {
    if (worker.state !== 'killed') worker.state = 'closing'
    if (patience > 0) worker.send({ kind: 'close' })
  }
  const late = setTimeout(() => {
    for (const worker of crew) worker.signal('SIGKILL') // SIGKILL also ends a frozen process
  }, patience)
  await left
  clearTimeout(late)
}

/**
 * Shows a waiting user what the wait is for. On a terminal, one line is redrawn in place. It shows the holder, how long
 * the holder has held the lock, and the user's own place in the queue. Without a terminal, nothing is shown by default.
 * On request, one line is printed at the beginning of the wait, and one line at its end.
 */
import { createLogUpdate } from 'log-update'
import stringWidth from 'string-width'
import type { ClientEvents, LockState, WaiterState } from '../src/index.ts'
import type { Connected } from './connection.ts'
import { heldFor, nameOf, namesOf, withReason } from './description.ts'
import { warn } from './failure.ts'
import { printable } from './printable.ts'
import { showTime, showTimeBriefly } from './times.ts'
import { cut } from './top/columns.ts'

/** Time between two inspections of the lock, in ms. */
const LOOK = 1_000
/** Keys and labels are never cut to fewer columns than this. */
const LEAST_NAME = 5

export interface Waiting {
  /** Ends the display when the wait is over, and removes the line. */
  end(): void
}

/**
 * Shows the user why the command waits. `inspect` inspects the lock of a key. With `verbose`, the wait is also reported
 * if stderr is not a terminal.
 */
export function showWaiting(at: Connected, inspect: (key: string) => Promise<LockState>, verbose: boolean): Waiting {
  if (process.stderr.isTTY) return drawn(at, inspect)
  return verbose ? told(at) : { end() {} }
}

function drawn({ locks }: Connected, inspect: (key: string) => Promise<LockState>): Waiting {
  const begun = performance.now()
  const line = createLogUpdate(process.stderr, { showCursor: true })
  /**
   * The lock that the command waits for. Several locks are requested one after another, and this is the latest of them.
   */
  let wanted: Pick<ClientEvents['waiting'], 'key' | 'owner'> | undefined
  let over = false
  /** The last state seen, and when it was seen. */
  let seen: { state: LockState; at: number } | undefined
  const draw = () => {
    if (over || !wanted || seen?.state.key !== wanted.key) return
    const now = performance.now()
    const onlooker = { owner: wanted.owner, waited: now - begun, age: now - seen.at }
    // Some terminals wrap a line that is exactly as wide as they are.
    line(waitingLine(seen.state, onlooker, (process.stderr.columns ?? 80) - 1))
  }
  const look = async (key: string) => {
    seen = { state: await inspect(key), at: performance.now() }
    draw()
  }
  // Errors are ignored, because the line is only an aid, and the wait itself reports failures. Until Redis answers, the
  // times on the line keep counting.
  const update = () => {
    draw()
    if (wanted) look(wanted.key).catch(() => {})
  }
  let timer: NodeJS.Timeout | undefined
  const began = (event: ClientEvents['waiting']) => {
    wanted = event
    update()
    timer ??= setInterval(update, LOOK)
  }
  locks.on('waiting', began)
  return {
    end() {
      over = true
      clearInterval(timer)
      locks.off('waiting', began)
      line.clear()
    },
  }
}

/** Reports a wait in a log: one line says why the command waits, and one line says how long it has waited. */
function told({ locks }: Connected): Waiting {
  const begun = performance.now()
  const waitedFor: string[] = []
  const began = (event: ClientEvents['waiting']) => {
    waitedFor.push(event.key)
    warn(withReason(`waiting for ${event.key}`, event))
  }
  locks.on('waiting', began)
  return {
    end() {
      locks.off('waiting', began)
      if (waitedFor.length > 0) warn(`waited ${showTime(performance.now() - begun)} for ${waitedFor.join(' and ')}`)
    },
  }
}

/** The user's own waiter. `waited` is how long it has waited, in ms. `age` is how old the inspected state is, in ms. */
interface Onlooker {
  readonly owner: string | undefined
  readonly waited: number
  readonly age: number
}

/**
 * Returns a line that fits into `columns`. Names are shortened first, because a shortened name is still recognisable.
 */
export function waitingLine(state: LockState, { owner, waited, age }: Onlooker, columns: number): string {
  const own = state.waiters.find(waiter => waiter.owner === owner)
  const { position } = own ?? {}
  const writer = own && writerAhead(state, own)
  const place = position === undefined ? '' : ` (${position} of ${state.waiters.length})`
  const held = writer ? undefined : heldFor(state)
  const names = [printable(state.key), printable(writer ? nameOf(writer) : namesOf(state))] as const
  const since = held === undefined ? '' : ` for ${showTimeBriefly(held + age)}`
  const line = (key: string, holder: string) =>
    `waiting ${showTimeBriefly(waited)}${place} for ${key}, ${writer ? 'behind the writer' : 'held by'} ${holder}${since}`
  const room = columns - stringWidth(line('', ''))
  return cut(line(...shared(names, Math.max(room, 2 * LEAST_NAME))), columns)
}

/**
 * Returns the writer that keeps a reader waiting although only readers hold the lock: the writer is ahead of the reader
 * in the queue.
 */
function writerAhead({ holders, waiters }: LockState, { mode, position }: WaiterState): WaiterState | undefined {
  if (mode !== 'read' || holders.some(holder => holder.mode === 'write')) return undefined
  return waiters.find(waiter => waiter.mode === 'write' && waiter.position < position)
}

/** Shortens both names to fit into `room` columns. The shorter name gets the room that it needs, up to half. */
function shared([one, other]: readonly [string, string], room: number): [string, string] {
  const [a, b] = [stringWidth(one), stringWidth(other)]
  const half = Math.floor(room / 2)
  const forOne = Math.min(a, Math.max(half, room - b))
  return [cut(one, forOne, 'middle'), cut(other, room - forOne, 'middle')]
}

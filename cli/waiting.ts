/**
 * Shows a waiting user what the wait is for. On a terminal, one line is redrawn in place. It shows the holder, how long
 * the holder has held the lock, and the user's own place in the queue. Without a terminal, nothing is shown by default.
 * On request, one line is printed at the beginning of the wait, and one line at its end.
 */
import { createLogUpdate } from 'log-update'
import stringWidth from 'string-width'
import { messageOf } from '../local-redis/error-message.ts'
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
  return verbose ? logged(at) : { end() {} }
}

function drawn({ locks }: Connected, inspect: (key: string) => Promise<LockState>): Waiting {
  const begun = performance.now()
  const line = createLogUpdate(process.stderr, { showCursor: true })
  /** The lock that the command waits for now. A command that takes several locks requests them one after another. */
  let wanted: Pick<ClientEvents['waiting'], 'key' | 'owner'> | undefined
  let over = false
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
  // Redraws the line before each inspection of the lock, so that the times on the line keep counting even if Redis does
  // not answer. Errors of the inspection are ignored, because the wait itself reports failures.
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
function logged({ locks }: Connected): Waiting {
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

/** Reports when Redis goes out of reach, and for how long it was, while the command waits or runs. */
export function reportOutages({ locks }: Connected): void {
  let since: number | undefined
  locks.on('disconnected', ({ error }) => {
    if (since === undefined) warn(`Redis has been out of reach since ${new Date().toISOString()}: ${messageOf(error)}`)
    since ??= performance.now()
  })
  locks.on('reconnected', () => {
    if (since !== undefined) warn(`Redis is back after ${showTime(performance.now() - since)}`)
    since = undefined
  })
}

/**
 * What the line says about the command that waits. `owner` is the owner for which the command requests the lock; the
 * command's entry among the lock's waiters has the same owner. `waited` is how long the command has waited, in ms.
 * `age` is how long ago the lock was inspected, in ms.
 */
interface Onlooker {
  readonly owner: string | undefined
  readonly waited: number
  readonly age: number
}

/**
 * Returns a line that fits into `columns`. If the line is too long, the names in it are shortened before anything else,
 * because a shortened name is still recognisable.
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

/**
 * Shortens both names so that together they fit into `room` columns. If one name needs less than half of the room, the
 * other name gets the rest.
 */
function shared([one, other]: readonly [string, string], room: number): [string, string] {
  const [a, b] = [stringWidth(one), stringWidth(other)]
  const half = Math.floor(room / 2)
  const forOne = Math.min(a, Math.max(half, room - b))
  return [cut(one, forOne, 'middle'), cut(other, room - forOne, 'middle')]
}

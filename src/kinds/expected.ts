/**
 * The expected wait of a queued caller. A release that finds callers queued adds the length of its hold to a running
 * mean in Redis (lua/lock.lua), the pace of the lock.
 */
import type { Crowd, Found, Pace, Standing, Turn } from '../kind.ts'
import type { WaiterState } from '../lock-state.ts'

/** The stored number is the mean in µs times this, plus how many holds it is made of. */
const COUNTS = 64
/** With fewer holds, there is no estimate. */
const LEAST = 8

/** Reads a pace as it is stored in Redis. Undefined: too few holds have ended. */
export function decodePace(stored: string | null | undefined, beside = ''): Pace | undefined {
  const number = Number(stored ?? 0)
  const count = number % COUNTS
  if (count < LEAST) return undefined
  const [waiting = 0, ...some] = beside.split(';').map(each => each.split(',').map(Number))
  const crowd = [Number(waiting), some] as unknown as Crowd
  return { hold: (number - count) / COUNTS / 1_000, readers: Number(waiting), crowd }
}

/**
 * Reads the clock in a reply, which may be followed by the pace of the lock: "<µs>[~<pace>[~<waiting readers>]]"; if the
 * lock has groups, as lua/groups.lua describes it.
 */
export function paceOf(text: string): [clock: string, pace: Pace | undefined] {
  if (!text.includes('~')) return [text, undefined]
  const [clock = '', pace, beside] = text.split('~')
  return [clock, decodePace(pace, beside)]
}

/** Reads the place of a waiter in a reply: a number, or what lua/groups.lua describes. */
export function standingOf(text: string): Pick<Standing, 'position' | 'turn'> {
  const [position = 0, ...turn] = text.split(',').map(Number)
  return turn.length === 0 ? { position } : { position, turn: turn as unknown as Turn }
}

/**
 * Returns in how many ms a waiter will be granted the lock. `turns`: which end of a hold, counted from the present
 * moment, makes room for it. `between`: ms between two such ends. The present hold has lasted for `age` ms, of `length`
 * on average. If it has lasted for longer than that, it may end at any time.
 */
export function waitFor(turns: number, between: number, length: number, age: number): number {
  return Math.round((turns - 1) * between + Math.max(length - age, between / 2))
}

/**
 * Returns the waiters with their positions, and with their expected waits if these can be estimated. `waiters`: in the
 * order of their grants.
 */
export function placed<W extends Omit<WaiterState, 'position'>>(
  waiters: readonly W[],
  { holders, pace }: Pick<Found, 'holders' | 'pace'>,
  expects: (at: Standing, pace: Pace, waiter: W) => number,
  taken?: number,
): (W & { position: number })[] {
  const age = Math.max(0, ...holders.map(({ heldFor }) => heldFor))
  return waiters.map((waiter, i) => {
    const position = i + 1
    return { ...waiter, position, ...(pace && { expected: expects({ position, taken, age }, pace, waiter) }) }
  })
}

/**
 * Reads the state of all locks again and again, for a view that draws them. One such reading is a survey.
 *
 *      begun ────────── survey ────────── ended ── rest ──▶ begun …       never two at a time
 *                          │ fails: the last picture stays, with the reason
 *
 * A survey is work for the server: a SCAN over its keys, and one script call per lock. A survey takes long if there are
 * many keys, if the network is slow or if the server is busy. Long surveys must not follow each other without a pause.
 * So after each survey the view rests for at least four times as long as the survey took, and surveys take at most a
 * fifth of the time.
 */
import type { Connected } from '../connection.ts'
import { type Picture, pictureOf, type SeenLock, seen } from './picture.ts'

/** How long the view rests after a survey of all locks, as a multiple of the survey's duration. */
const REST = 4

export interface WatchOptions {
  /** A pattern of keys, in the form that `locks.list` takes. Default: all locks. */
  readonly pattern?: string
  /**
   * The time from the start of one survey of all locks to the start of the next, in ms. If surveys take long, this time
   * becomes longer.
   */
  readonly interval: number
}

export interface Watch {
  /** All locks, as the last successful survey found them. */
  readonly picture: Picture | undefined
  /** The ms since the last successful survey of all locks ended, and the ms that this survey took. */
  readonly age: number
  readonly took: number
  /**
   * The time from the start of one survey of all locks to the start of the next, in ms, at present. It is `interval`,
   * or longer if surveys take long.
   */
  readonly pace: number
  /**
   * Why there is no newer picture: the connection is gone, or the last survey of all locks failed. The next survey that
   * succeeds clears this field.
   */
  readonly trouble: Error | undefined
  /**
   * How long the current survey of all locks has been running, in ms; undefined between surveys. If this time is long
   * and there is no `trouble`, Redis does not answer.
   */
  readonly surveying: number | undefined
  /**
   * The ms until the next survey of all locks. Undefined during a survey, and while the surveys are paused or ended.
   */
  readonly nextIn: number | undefined
  /** Stops the surveys of all locks until `resume`. */
  pause(): void
  /**
   * Continues the surveys of all locks. The next survey begins when it is due, and no sooner, so that frequent pauses
   * add no load.
   */
  resume(): void
  /** Ends the surveys and the calls of `changed`. A survey that is under way is abandoned. */
  close(): void
}

/**
 * Starts the surveys of all locks. A timer starts the first survey, so a caller that calls `pause` at once can still
 * prevent this survey. Calls `changed` after each survey, and when the connection is lost.
 */
export function watch(at: Connected, { pattern, interval }: WatchOptions, changed: () => void): Watch {
  const { locks } = at
  let last: { picture: Picture; ended: number; took: number } | undefined
  let trouble: Error | undefined
  let begun: number | undefined
  let gone = false
  /**
   * Whether the connection was lost during the current survey of all locks. If so, the survey's duration does not show
   * how much work the survey was for Redis.
   */
  let interrupted = false
  let due = performance.now()
  let timer: NodeJS.Timeout | undefined
  let paused = false
  let closed = false

  const disconnected = ({ error }: { error: Error }) => {
    trouble = error
    gone = interrupted = true
    changed()
  }
  // If a survey of all locks is waiting for the connection, the survey now continues. `trouble` stays until a survey
  // succeeds.
  const reconnected = () => {
    gone = false
    due = Math.min(due, performance.now() + interval)
    schedule()
  }

  function schedule(): void {
    clearTimeout(timer)
    timer = undefined
    if (closed || paused || begun !== undefined) return
    timer = setTimeout(() => void look(), Math.max(0, due - performance.now()))
  }

  async function look(): Promise<void> {
    timer = undefined
    const start = performance.now()
    begun = start
    interrupted = gone
    let rest = interval
    try {
      const picture = await survey(at, pattern, () => closed)
      const ended = performance.now()
      const took = ended - start
      last = { picture, ended, took }
      trouble = undefined
      rest = interrupted ? interval : Math.max(interval - took, REST * took)
    } catch (error) {
      // While the connection is gone, `trouble` already holds the connection's error, which says more than the error of
      // the survey that has just failed.
      if (!gone) trouble = error as Error
    }
    begun = undefined
    if (closed) return
    due = performance.now() + rest
    schedule()
    changed()
  }

  locks.on('disconnected', disconnected)
  locks.on('reconnected', reconnected)
  schedule()
  return {
    get picture() {
      return last?.picture
    },
    get age() {
      return last ? performance.now() - last.ended : 0
    },
    get took() {
      return last?.took ?? 0
    },
    get pace() {
      return Math.max(interval, (REST + 1) * (last?.took ?? 0))
    },
    get trouble() {
      return trouble
    },
    get surveying() {
      return begun === undefined ? undefined : performance.now() - begun
    },
    get nextIn() {
      return timer && Math.max(0, due - performance.now())
    },
    pause() {
      paused = true
      schedule()
    },
    resume() {
      paused = false
      schedule()
    },
    close() {
      closed = true
      schedule()
      locks.off('disconnected', disconnected)
      locks.off('reconnected', reconnected)
    },
  }
}

/** Makes one survey of all locks, for instance for the option `--once`. Rejects with the errors of `locks.list`. */
export async function survey(at: Connected, pattern?: string, abandoned = () => false): Promise<Picture> {
  const found: SeenLock[] = []
  for await (const state of at.locks.list(pattern)) {
    if (abandoned()) break
    found.push(seen(state))
  }
  return pictureOf(found)
}

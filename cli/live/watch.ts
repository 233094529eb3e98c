/**
 * Looks at all locks again and again, for a view that draws them.
 *
 *      begun ────────── survey ────────── ended ── rest ──▶ begun …       never two at a time
 *                          │ fails: the last picture stays, with the reason
 *
 * A survey is work for the server: a SCAN over its keys, and one script call per lock. So it must not follow upon itself
 * where that takes long, because there are many keys, the network is slow, or the server has other things to do: the rest
 * is at least four times as long as the survey was, and no view takes more than a fifth of the time.
 */
import type { Connected } from '../connection.ts'
import { type Picture, pictureOf, type SeenLock, seen } from './picture.ts'

/** Rest after a survey, as a multiple of what it took. */
const REST = 4

export interface WatchOptions {
  /** As of `locks.list`. Default: all. */
  readonly pattern?: string
  /** From the beginning of a survey to that of the next, in ms, unless the survey takes longer than a fifth of it. */
  readonly interval: number
}

export interface Watch {
  /** Of the last survey that succeeded. */
  readonly picture: Picture | undefined
  /** ms since it was complete, and ms that it took. */
  readonly age: number
  readonly took: number
  /** From the beginning of one survey to that of the next as they are made now, in ms: the interval, or what is seemly. */
  readonly pace: number
  /** Why there is no newer one: the connection is gone, or the last survey failed. Gone with the next that succeeds. */
  readonly trouble: Error | undefined
  /** ms for which a survey has been under way. Undefined: none is. Long, with no trouble told yet: Redis does not answer. */
  readonly surveying: number | undefined
  /** ms until the next one begins. Undefined: paused, closed, or one is under way. */
  readonly nextIn: number | undefined
  /** No further survey begins. */
  pause(): void
  /** The next one begins as soon as it is due, so that resuming often costs no more than not pausing. */
  resume(): void
  /** Nothing is told any more. A survey under way is abandoned. */
  close(): void
}

/** The first survey begins at once, unless it is paused at once. `changed`: a survey has ended, or trouble come or gone. */
export function watch(at: Connected, { pattern, interval }: WatchOptions, changed: () => void): Watch {
  const { locks } = at
  let last: { picture: Picture; ended: number; took: number } | undefined
  let trouble: Error | undefined
  let begun: number | undefined
  let gone = false
  /** The connection was gone during this survey: how long it took says nothing about its cost. */
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
  // A survey that waits for the connection goes on by itself; otherwise it is the next one that takes the trouble away.
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
      // Why the connection is gone says more than that there is none.
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

/** One picture, for instance for `--once`. Rejects as `locks.list` does. */
export async function survey(at: Connected, pattern?: string, abandoned = () => false): Promise<Picture> {
  const found: SeenLock[] = []
  for await (const state of at.locks.list(pattern)) {
    if (abandoned()) break
    found.push(seen(state))
  }
  return pictureOf(found)
}

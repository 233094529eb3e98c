/**
 * All viewers of the page. They share one watch (live/watch.ts), so Redis does no more work for ten viewers than for
 * one. While there are no viewers, the watch is paused.
 */

import { messageOf } from '../../local-redis/error-message.ts'
import type { Connected } from '../connection.ts'
import { type Watch, type WatchOptions, watch } from '../live/watch.ts'
import { printable } from '../printable.ts'
import { Memory } from './memory.ts'
import type { Frame } from './page/messages.ts'
import { type CheckedView, openOf, tableOf, totalsOf } from './view.ts'

/**
 * Each viewer receives a message at least this often, in ms. If the messages stop, the viewer knows that the connection
 * is broken.
 */
const PULSE = 2_000
/** How late a new picture of the locks may be before the page says so, in ms. */
const LATE = 1_500

export class Audience {
  readonly #watch: Watch
  readonly #memory = new Memory()
  readonly #viewers = new Set<Viewer>()
  #pulse: NodeJS.Timeout | undefined
  #remembered: object | undefined

  constructor(at: Connected, options: WatchOptions) {
    this.#watch = watch(at, options, () => this.#changed())
    this.#watch.pause()
  }

  /** Adds a viewer, which receives pictures of the locks until it leaves. */
  join(view: CheckedView): Viewer {
    const viewer = new Viewer(
      () => this.#frame(view),
      () => this.#leave(viewer),
    )
    this.#viewers.add(viewer)
    this.#watch.resume()
    this.#pulse ??= setInterval(() => this.#wakeAll(), PULSE)
    // While there were no viewers, the locks were not read. If the last picture of the locks is old, the new viewer
    // waits for the next one.
    if (this.#watch.picture && this.#watch.age < this.#patience) viewer.wake()
    return viewer
  }

  close(): void {
    for (const viewer of this.#viewers) viewer.leave()
    this.#watch.close()
  }

  #leave(viewer: Viewer): void {
    this.#viewers.delete(viewer)
    if (this.#viewers.size > 0) return
    this.#watch.pause()
    clearInterval(this.#pulse)
    this.#pulse = undefined
  }

  #changed(): void {
    const { picture } = this.#watch
    if (picture && picture !== this.#remembered) this.#memory.add(picture, 2 * this.#patience)
    this.#remembered = picture
    this.#wakeAll()
  }

  #wakeAll(): void {
    for (const viewer of this.#viewers) viewer.wake()
  }

  /** If the newest picture of the locks is older than this, in ms, the page calls it late. */
  get #patience(): number {
    return this.#watch.pace + this.#watch.took + LATE
  }

  #frame(view: CheckedView): Frame {
    const { picture, age, trouble } = this.#watch
    return {
      age: picture ? Math.round(age) : null,
      patience: Math.round(this.#patience),
      trouble: trouble ? printable(messageOf(trouble)) : null,
      ...(picture && {
        totals: totalsOf(picture),
        trend: this.#memory.trend(),
        table: tableOf(picture, view, this.#memory),
        lock: openOf(picture, view, this.#memory),
      }),
    }
  }
}

/** One open page. A slow viewer misses some pictures of the locks, but always receives the latest. */
export class Viewer {
  readonly #frame: () => Frame
  readonly #left: () => void
  readonly #sent = new Map<string, string>()
  #news = false
  #gone = false
  #wake = () => {}

  constructor(frame: () => Frame, left: () => void) {
    this.#frame = frame
    this.#left = left
  }

  wake(): void {
    this.#news = true
    this.#wake()
  }

  leave(): void {
    if (this.#gone) return
    this.#gone = true
    this.#left()
    this.#wake()
  }

  /**
   * Resolves to the next message when there is something new to send. The message is JSON, and leaves out the large
   * parts (`leftOut`) that have not changed. Resolves to undefined if the viewer has left.
   */
  async next(): Promise<string | undefined> {
    while (!this.#news && !this.#gone) {
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
    if (this.#gone) return undefined
    this.#news = false
    const parts = Object.entries(this.#frame()).map(([name, part]) => [name, JSON.stringify(part)] as const)
    const changed = parts.filter(([name, text]) => this.#sent.get(name) !== text || !leftOut.has(name))
    for (const [name, text] of changed) this.#sent.set(name, text)
    return `{${changed.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`
  }
}

/** The parts of a frame that are sent only when they have changed. */
const leftOut: ReadonlySet<string> = new Set<keyof Frame>(['totals', 'trend', 'table', 'lock'])

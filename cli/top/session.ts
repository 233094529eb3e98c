/** `baton top` in a terminal, from its beginning to its end. */
import type { ReadStream, WriteStream } from 'node:tty'
import picocolors from 'picocolors'
import type { LockClient } from '../../src/index.ts'
import type { Connected } from '../connection.ts'
import type { Order } from '../live/picture.ts'
import { watch } from '../live/watch.ts'
import { frame, pageOf } from './frame.ts'
import { Terminal } from './terminal.ts'
import { firstView, type Key, press } from './view.ts'

interface Wanted {
  readonly pattern: string
  /** ms */
  readonly interval: number
  readonly order: Order
}

/** How often ages on the screen grow while no new picture comes, in ms. */
const TICK = 1_000

/**
 * Resolves when it is quit: undefined, or the number of the signal that asked for it. Rejects where there is nothing to
 * see from the start: the pattern is none, or Redis refuses.
 */
export function showLive(
  at: Connected,
  { pattern, interval, order }: Wanted,
  input: ReadStream,
  output: WriteStream,
): Promise<number | undefined> {
  const colours = picocolors.createColors(!process.env['NO_COLOR'])
  return new Promise((resolve, reject) => {
    let view = { ...firstView, order }
    let paused = false

    const end = (settle: () => void) => {
      clearInterval(ticks)
      live.close()
      terminal.close()
      tellWarnings()
      settle()
    }
    const draw = () =>
      terminal.draw(frame({ view, watch: live, paused, interval, where: at.where }, terminal.size, colours))
    // What fails while it draws is told where it can be read.
    const guarded = (act: () => void) => () => {
      try {
        act()
      } catch (error) {
        end(() => reject(error))
      }
    }
    const seen = guarded(() => {
      const { trouble, picture, surveying } = live
      if (trouble && !picture && surveying === undefined) return end(() => reject(trouble))
      draw()
    })
    const pressed = (key: Key) => {
      const next = press(view, key, live.picture, pageOf(view, terminal.size))
      if (next === 'quit') return end(() => resolve(undefined))
      if (next === 'suspend') return terminal.suspend()
      if (next === 'redraw') terminal.forget()
      else if (next === 'pause') {
        paused = !paused
        if (paused) live.pause()
        else live.resume()
      } else view = next
      draw()
    }

    const terminal = new Terminal(input, output, {
      key: key => guarded(() => pressed(key))(),
      redraw: guarded(draw),
      end: signal => end(() => resolve(signal)),
    })
    const tellWarnings = holdWarnings(at.locks)
    const live = watch(at, { pattern, interval }, seen)
    const ticks = setInterval(guarded(draw), TICK)
    guarded(draw)()
  })
}

/** What the lock client warns of is printed where the screen is now. Until the function that it returns is called, it waits. */
function holdWarnings(locks: LockClient): () => void {
  const listeners = locks.listeners('error')
  const held: { error: unknown }[] = []
  const hold = (warning: { error: unknown }) => void held.push(warning)
  locks.removeAllListeners('error').on('error', hold)
  return () => {
    locks.off('error', hold)
    for (const listener of listeners) locks.on('error', listener)
    for (const warning of held.splice(0)) locks.emit('error', warning)
  }
}

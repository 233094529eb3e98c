/** Runs the live view of `baton top` in a terminal. */
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
  /** How often all locks are read from Redis, in ms. */
  readonly interval: number
  readonly order: Order
}

/** How often the screen is redrawn even if no new data have arrived, in ms. The screen shows how old the data are. */
const TICK = 1_000

/**
 * Resolves when the view ends. The result is undefined if the user has quit, or the number of the signal that ended the
 * view. Rejects if the first reading of all locks fails, for instance because the pattern is invalid or Redis refuses
 * the commands.
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
    // If drawing fails, leaves the alternate screen first, so that the user can read the error.
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

/**
 * Holds back the lock client's warnings until the returned function is called, because they would be written over the
 * view.
 */
function holdWarnings(locks: LockClient): () => void {
  const listeners = locks.listeners('error')
  const held: { error: Error }[] = []
  const hold = (warning: { error: Error }) => void held.push(warning)
  locks.removeAllListeners('error').on('error', hold)
  return () => {
    locks.off('error', hold)
    for (const listener of listeners) locks.on('error', listener)
    for (const warning of held.splice(0)) locks.emit('error', warning)
  }
}

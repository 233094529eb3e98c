/**
 * Calls a function at regular intervals, and records when the event loop stood still. All proxies depend on this event
 * loop.
 */
import { now, type Recorder } from '../recorder.ts'

/** Time between two calls, in ms. */
const LOOK = 40
/** If a call comes more than this many ms late, the event loop counts as having stood still. */
const STALLED = 200

/** Starts calling `look` every `LOOK` ms. Returns a function that stops the calls. */
export function looking(recorder: Recorder, look: () => void): () => void {
  let last = now()
  const timer = setInterval(() => {
    const t = now()
    if (t - last > LOOK + STALLED) recorder.record('stall', { from: last }, t)
    last = t
    look()
  }, LOOK)
  return () => clearInterval(timer)
}

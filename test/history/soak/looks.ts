/** Calls a function again and again, and measures delays of the event loop, on which all proxies depend. */
import { now, type Recorder } from '../recorder.ts'

/** Time between two calls, in ms. */
const LOOK = 40
/** If a call comes this many ms late, the event loop stood still. */
const STALLED = 200

/** Begins the calls. Returns a function that ends them. */
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

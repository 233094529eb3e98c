/** Looks at something again and again, and measures delays of the event loop, through which all proxies run. */
import { now, type Recorder } from '../recorder.ts'

/** Time between two looks, in ms. */
const LOOK = 40
/** If a look comes this many ms late, the event loop stood still. */
const STALLED = 200

/** Returns a function that stops it. */
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

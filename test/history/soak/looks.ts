/** Looks at something again and again, and at the event loop that it runs in, through which all proxies go. */
import { now, type Recorder } from '../recorder.ts'

/** Between two looks, ms. */
const LOOK = 40
/** A look that comes this much late says that the event loop stood still. */
const STALLED = 200

/** Returns what ends it. */
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

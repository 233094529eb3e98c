/** A process that records events until it is killed. After the first thousand events, it sends a message. */
import { Recorder } from './recorder.ts'

const [file, worker] = process.argv.slice(2) as [string, string]
const recorder = new Recorder(file)

let count = 0
setInterval(() => {
  for (let i = 0; i < 200; i++)
    recorder.record('waiting', { worker, key: 'x'.repeat(count % 200), owner: String(count++) })
  if (count === 1_000) process.send?.('recorded')
})

/**
 * Registers listeners that throw, for every event. The locks must still work, and the errors must surface as uncaught
 * exceptions.
 */
import { channel } from 'node:diagnostics_channel'
import { LockClient } from '../../../src/index.ts'
import { sourceOf } from '../../kit/topologies/source.ts'

const [place, key] = process.argv.slice(2) as [string, string]

let uncaught = 0
process.on('uncaughtException', () => {
  uncaught += 1
})

const locks = new LockClient(sourceOf(JSON.parse(place)), { lease: 1_800 })
for (const name of ['waiting', 'acquired', 'renewed', 'released', 'lost'] as const) {
  const fail = () => {
    throw new Error(`a mistake in ${name}`)
  }
  locks.on(name, fail)
  channel(`redis-baton:${name}`).subscribe(fail)
}
const first = await locks.lock(key)
const [fair, unfair] = [locks.lock(key, { fair: true }), locks.lock(key)]
while ((await locks.inspect(key)).waiters.length === 0);
await new Promise(resolve => setTimeout(resolve, 2_000))
const renewed = first.held
const released = [await first.release(), await (await fair).release(), await (await unfair).release()]
const lost = await locks.lock(key, { lease: 200 })
// In memory, a lease alone keeps no process alive.
while (!lost.signal.aborted) await new Promise(resolve => setTimeout(resolve, 10))
await locks.close()
process.send?.({ renewed, released, lost: !lost.held, uncaught })
process.disconnect?.()

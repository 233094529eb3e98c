/** Tests a process whose uptime is wrong, or cannot be read, although its machine was not suspended. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, onTestFinished } from 'vitest'
import { Peer } from '../kit/peer.ts'
import { frameProxy } from '../kit/proxies.ts'
import { client, freshKey, nothingLeft, plainRedis, redisUrl, test } from '../kit/redis.ts'
import { SteppedClock } from '../kit/stepped-clock.ts'
import { emptyFolder } from '../kit/temp.ts'
import { eventually, sleep } from '../kit/time.ts'

const DAY = 86_400_000
/** A fair caller is granted the lock when its client hears messages. Then Redis is asked about holds for no other reason. */
const LISTENING = { fair: true }

// In a container, the uptime is that of the container. It may be wrong for a moment, or suddenly be that of the host.
// This test fails if `const both = Math.min(day, up)` becomes `const both = up` in src/clock.ts: all leases run out.
test.each([
  { what: 'ahead', wrong: DAY, right: 0 },
  { what: 'back, and then right again', wrong: -DAY, right: 0 },
])(
  'the uptime of a container is $what: I1 I4, "held" is false until Redis has answered, and no lock is lost',
  async ({ wrong, right }) => {
    const clock = await SteppedClock.make(await emptyFolder())
    onTestFinished(() => clock.close())
    const proxy = await frameProxy(redisUrl())
    const peer = await clock.under(() => Peer.start({ lease: 30_000 }, proxy.url))
    const [key, other] = [freshKey(), client()]
    const holds = [await peer.lock(key, LISTENING), await peer.lock(freshKey('fixed'), { lease: 60_000 })]
    const states = () => Promise.all(holds.map(({ id }) => peer.state(id)))
    const asked = proxy.rule({ direction: 'up', name: 'renew' }, 'hold')
    if (wrong < 0) {
      clock.setUptime(wrong)
      await sleep(600)
      for (const state of await states()) expect(state).toEqual({ held: true, aborted: false, lost: 0 })
      expect(asked.count).toBe(0)
    }
    clock.setUptime(wrong > 0 ? wrong : right)
    await eventually(async () => (await states()).every(({ held }) => !held))
    await asked.happened
    await sleep(300)
    for (const state of await states()) expect(state).toEqual({ held: false, aborted: false, lost: 0 })
    asked.lift()
    await eventually(async () => (await states()).every(({ held }) => held))
    expect(await other.tryLock(key)).toBeNull()
    for (const { id } of holds) expect(await peer.release(id)).toBe(true)
    await nothingLeft(plainRedis(), other, key)
  },
)

// Without a file descriptor, the process cannot open /proc/uptime. Then Node reports another clock, in whole seconds.
// This test fails if `Number.isInteger(seconds) ? 1_000 : 0` becomes `0` in src/clock.ts: the fraction of a second that
// the uptime gains when it can be read again counts.
test('a process has no file descriptor left: its clock gains nothing, and Redis is not asked', async ({ key }) => {
  const proxy = await frameProxy(redisUrl())
  const peer = await Peer.start({}, proxy.url)
  await promisify(execFile)('prlimit', ['--pid', `${peer.child.pid}`, '--nofile=100'])
  const { id } = await peer.lock(key, { lease: 60_000, ...LISTENING })
  const asked = proxy.rule({ direction: 'up', name: 'renew' }, 'twice')
  const before = await peer.ends(id)
  for (const ms of [1_100, 1_230, 1_360]) {
    await peer.starve(ms)
    await sleep(1_100)
  }
  const after = await peer.ends(id)
  expect(after.to).toBeGreaterThanOrEqual(before.from - 1)
  expect(after.from).toBeLessThanOrEqual(before.to + 1)
  expect(asked.count).toBe(0)
  expect(await peer.release(id)).toBe(true)
})

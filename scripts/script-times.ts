/**
 * Compares what two versions of the scripts in lua/ cost the server: the µs per call that `INFO commandstats` reports.
 * These include neither the network nor the client.
 *
 * Each scene is a cycle of calls that leaves the lock as it found it. Measured calls are sent by EVALSHA. Other calls
 * that the scene needs are sent by EVAL, which Redis counts separately. The versions take turns in short rounds, in
 * another order each time, so that other load on the machine affects both. For each scene, the results are the median
 * time of each version over all rounds, and the median of the ratio between the two versions in each round.
 *
 * `scripts/lua-texts.ts` writes the texts of a version:
 *
 *   tsx scripts/script-times.ts <texts before> <texts after> [rounds] [cycles in each] > script-times.json
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { machine, usage, usedByOthers } from '../benchmarks/harness/machine.ts'
import { obtainRedis } from '../local-redis/index.ts'
import { namesOf } from '../src/kinds/mutex/names.ts'

const [before, after, rounds, cycles] = process.argv.slice(2)
if (before === undefined || after === undefined) {
  console.error('usage: tsx scripts/script-times.ts <texts before> <texts after> [rounds] [cycles in each]')
  process.exit(64)
}
const [ROUNDS, CYCLES] = [Number(rounds ?? 500), Number(cycles ?? 30)]
const [LEASE, TTL] = [30_000, 15_000]
/** The default prefix of inbox channels. The measured scripts use it. */
const inbox = 'lock:inbox:'

const server = await obtainRedis({ announce: line => console.error(line) })
const redis = new Redis(server.url)
const ear = new Redis(server.url)

type Call = readonly [script: string, keys: readonly string[], args: readonly (string | number)[]]
interface Step {
  readonly call: Call
  readonly measured: boolean
}

const { lock } = namesOf('times:{a}')
const all = [lock]
const [ann, ben] = ['a', 'b'].map(letter => letter.repeat(28)) as [string, string]
const claimOf = (id: string) => `${id} 0 ${LEASE} ${TTL} 0 a label`
const acquire = (id: string, ...mode: 'queue'[]): Call => ['acquire', all, [claimOf(id), ...mode]]
const release = (id: string): Call => ['release', all, [id]]
const leave = (id: string): Call => ['leave', all, [id, claimOf(id)]]
const tend = (ids: readonly string[]): Call => [
  'tend',
  all,
  [TTL, ...ids.flatMap((id, i) => [claimOf(id), Date.now() * 1000 + i])],
]
const renew = (id: string): Call => ['renew', [lock], [id, Number.MAX_SAFE_INTEGER, LEASE]]

const counted = (call: Call): Step => ({ call, measured: true })
const aside = (call: Call): Step => ({ call, measured: false })
const crowd = Array.from({ length: 10 }, (_, i) => `c${'d'.repeat(26)}${i}`)
// Each of these two calls of `tend` contains the waiters' tickets, and is sent many times. The first time, the call
// writes the tickets into the queue. From the second time on, it changes nothing. Only these calls are measured.
const [beatOfOne, beatOfAll] = [tend([ben]), tend(crowd)]

const scenes: Record<string, readonly Step[]> = {
  'acquire, uncontended, unfair': [counted(acquire(ann)), aside(release(ann))],
  'acquire, uncontended, fair': [counted(acquire(ann, 'queue')), aside(release(ann))],
  'release, uncontended, unfair': [aside(acquire(ann)), counted(release(ann))],
  'release, uncontended, fair': [aside(acquire(ann, 'queue')), counted(release(ann))],
  'acquire, refused': [aside(acquire(ann, 'queue')), counted(acquire(ben)), aside(release(ann))],
  'acquire, queued': [
    aside(acquire(ann, 'queue')),
    counted(acquire(ben, 'queue')),
    aside(leave(ben)),
    aside(release(ann)),
  ],
  'release, handing on': [
    aside(acquire(ann, 'queue')),
    aside(acquire(ben, 'queue')),
    counted(release(ann)),
    aside(release(ben)),
  ],
  'leave, queued': [
    aside(acquire(ann, 'queue')),
    aside(acquire(ben, 'queue')),
    counted(leave(ben)),
    aside(release(ann)),
  ],
  'tend, 1 waiter': [
    aside(acquire(ann, 'queue')),
    aside(acquire(ben, 'queue')),
    aside(beatOfOne),
    counted(beatOfOne),
    aside(leave(ben)),
    aside(release(ann)),
  ],
  'tend, 10 waiters': [
    aside(acquire(ann, 'queue')),
    ...crowd.map(id => aside(acquire(id, 'queue'))),
    aside(beatOfAll),
    counted(beatOfAll),
    ...crowd.map(id => aside(leave(id))),
    aside(release(ann)),
  ],
  'renew, 1 hold': [aside(acquire(ann, 'queue')), counted(renew(ann)), aside(release(ann))],
}

/** Loads the scripts of a version, and returns their texts and hashes by their names. */
async function loaded(folder: string): Promise<Map<string, { text: string; sha: string }>> {
  const texts = new Map<string, { text: string; sha: string }>()
  for (const name of ['acquire', 'release', 'leave', 'tend', 'renew']) {
    const text = readFileSync(join(folder, `${name}.lua`), 'utf8')
    await redis.script('LOAD', text)
    texts.set(name, { text, sha: createHash('sha1').update(text).digest('hex') })
  }
  return texts
}

/** Returns the µs per measured call. */
async function measure(version: Awaited<ReturnType<typeof loaded>>, steps: readonly Step[]): Promise<number> {
  await redis.config('RESETSTAT')
  const pipeline = redis.pipeline()
  for (let i = 0; i < CYCLES; i++) {
    for (const { call, measured } of steps) {
      const [script, keys, args] = call
      const { text, sha } = version.get(script)!
      if (measured) pipeline.evalsha(sha, keys.length, ...keys, ...args)
      else pipeline.eval(text, keys.length, ...keys, ...args)
    }
  }
  for (const [error] of (await pipeline.exec())!) if (error) throw error
  const [, calls, micros] = /^cmdstat_evalsha:calls=(\d+),usec=(\d+)/m.exec(await redis.info('commandstats'))!
  return Number(micros) / Number(calls)
}

const quantileOf = (numbers: readonly number[], share: number) =>
  [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length * share)]!

await ear.subscribe(...[ann, ben, crowd[0]!].map(id => inbox + id.slice(0, 12)))
const versions = [await loaded(before), await loaded(after)] as const
const begin = usage()
const runs: Record<string, { before: number[]; after: number[] }> = {}
for (let round = 0; round <= ROUNDS; round++) {
  for (const [scene, steps] of Object.entries(scenes)) {
    const first = round % 2
    const costs: number[] = []
    for (const which of [first, 1 - first]) costs[which] = await measure(versions[which]!, steps)
    // The first round is a warm-up.
    if (round === 0) runs[scene] = { before: [], after: [] }
    else {
      runs[scene]!.before.push(costs[0]!)
      runs[scene]!.after.push(costs[1]!)
    }
  }
}
const rounded = (number: number) => Math.round(number * 1000) / 1000
const summary = Object.fromEntries(
  Object.entries(runs).map(([scene, run]) => {
    const of = (share: number) => ({
      before: rounded(quantileOf(run.before, share)),
      after: rounded(quantileOf(run.after, share)),
    })
    const ratios = run.after.map((cost, i) => cost / run.before[i]!)
    return [scene, { median: of(0.5), tenth: of(0.1), ratio: rounded(quantileOf(ratios, 0.5)) }]
  }),
)
const [, version] = /redis_version:(\S+)/.exec(await redis.info('server')) ?? []
const result = {
  date: new Date().toISOString(),
  machine: { ...machine(), redis: version, usedByOthers: usedByOthers(begin, usage()) },
  options: { rounds: ROUNDS, cycles: CYCLES },
  summary,
}
const list = (costs: readonly number[]) => `[${costs.map(rounded).join(',')}]`
const lines = Object.entries(runs).map(([scene, { before, after }]) => {
  return `    ${JSON.stringify(scene)}: {\n      "before": ${list(before)},\n      "after": ${list(after)}\n    }`
})
console.log(`${JSON.stringify(result, null, 2).slice(0, -2)},\n  "rounds": {\n${lines.join(',\n')}\n  }\n}`)
ear.disconnect()
redis.disconnect()
await server.stop()

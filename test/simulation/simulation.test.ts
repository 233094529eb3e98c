import { expect, test } from 'vitest'
import { runAll, traceOf } from './run.ts'
test('x', async () => {
  const seed = process.env['BATON_SEED']
  if (seed) { const t = await traceOf(Number(seed)); console.log(t.lines.slice(-Number(process.env['N'] ?? 60)).join('\n'), t.failure); return }
  function* seeds() { for (let i = 1; ; i++) yield i }
  const r = await runAll(seeds(), 10)
  console.log(r, r.histories / r.seconds, r.events / r.seconds)
  expect(r.failed).toBeUndefined()
}, 60000)

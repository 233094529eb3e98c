/** examples/gpu.ts: five workers share three GPUs, and one worker is killed at work. */
import { expect, test } from 'vitest'
import { eventually } from '../../kit/time.ts'
import { Scene } from './scene.ts'

const scene = new Scene()

test('no GPU is given to two workers, all are used, and that of a killed worker is used again', async () => {
  const log = () => scene.redis.lrange('example:gpu-log', 0, -1)
  const env = { GPUS: '3', LEASE_MS: '1500' }
  const doomed = scene.start('gpu.ts', { ...env, JOB_MS: '60000' })
  await eventually(async () => (await log()).length > 0, 15_000)
  expect(await log()).toEqual(['begin 0'])
  const workers = Array.from({ length: 4 }, () => scene.start('gpu.ts', { ...env, JOBS: '20' }))
  await eventually(async () => (await log()).length > 10, 30_000)
  expect((await log()).slice(1)).not.toContain('begin 0')
  await doomed.end('SIGKILL')
  await scene.redis.rpush('example:gpu-log', 'end 0')
  expect(await Promise.all(workers.map(worker => worker.ended()))).toEqual([0, 0, 0, 0])
  const busy = new Set<string>()
  const used = new Set<string>()
  for (const line of await log()) {
    const [what, gpu = ''] = line.split(' ')
    expect(busy.has(gpu)).toBe(what === 'end')
    if (what === 'begin') busy.add(gpu)
    else busy.delete(gpu)
    used.add(gpu)
  }
  expect([...used].sort()).toEqual(['0', '1', '2'])
}, 90_000)

/**
 * Workers share the GPUs of one machine, one GPU each. The GPUs are a semaphore with as many permits, and `lease.slot` is
 * the number of the GPU: the smallest that no other worker has.
 *
 *     GPUS=4 npx tsx examples/gpu.ts
 *
 * Start as many workers as you like. If you kill one (`kill -9`), its GPU is given to the next worker when the lease
 * ends. From a shell:
 *
 *     baton run gpu --permits 4 --slots -- sh -c 'CUDA_VISIBLE_DEVICES=$BATON_SLOT exec ./train'
 */
import { setTimeout as train } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { LockClient } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379', GPUS = '4', JOBS = '5', LEASE_MS = '10000', JOB_MS = '50' } = process.env

const redis = new Redis(REDIS_URL)
redis.on('error', error => console.error(`Redis: ${error.message}`))
const locks = new LockClient(redis, { fair: true, lease: Number(LEASE_MS) })
const gpus = locks.semaphore('example:gpu', Number(GPUS))

/** In this example a job writes into a log when it begins and when it ends. */
async function job(gpu: number, signal: AbortSignal): Promise<void> {
  await redis.rpush('example:gpu-log', `begin ${gpu}`)
  // When the lease is lost, another worker may get this GPU. So the signal of the lease stops the job.
  await train(Number(JOB_MS), undefined, { signal })
  await redis.rpush('example:gpu-log', `end ${gpu}`)
}

try {
  for (let i = 0; i < Number(JOBS); i++) {
    await gpus.using({ slots: true }, async ({ slot = 0, signal }) => {
      console.log(`GPU ${slot}`)
      await job(slot, signal)
    })
  }
} finally {
  await locks.close()
  redis.disconnect()
}

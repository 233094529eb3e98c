/** A server whose time of day the test sets: a small library, compiled here and preloaded, adds an offset to it. */
import { execFile } from 'node:child_process'
import { openSync, writeSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { findServerSource } from '../../../src/local-redis/index.ts'
import { bluntRedis, folder, serverIn } from './servers.ts'

const source = fileURLToPath(new URL('clock-shim.c', import.meta.url))

export async function steppedServer() {
  const dir = await folder()
  const [shim, offset] = [join(dir, 'clock-shim.so'), join(dir, 'offset')]
  await promisify(execFile)('gcc', ['-shared', '-fPIC', '-O1', '-o', shim, source, '-ldl'])
  await writeFile(offset, Buffer.alloc(8))
  await findServerSource()
  Object.assign(process.env, { LD_PRELOAD: shim, BATON_CLOCK_OFFSET: offset })
  const server = await serverIn(dir).finally(() => {
    delete process.env['LD_PRELOAD']
    delete process.env['BATON_CLOCK_OFFSET']
  })
  const redis = bluntRedis(server.url)
  const file = openSync(offset, 'r+')

  /** Sets its time of day to the true one plus so many ms, at once. */
  async function step(ms: number): Promise<void> {
    const bytes = Buffer.alloc(8)
    bytes.writeBigInt64LE(BigInt(ms) * 1_000n)
    writeSync(file, bytes, 0, 8, 0)
    const [seconds] = await redis.time()
    expect(Math.abs(Number(seconds) * 1_000 - Date.now() - ms)).toBeLessThan(5_000)
  }
  await step(0)
  return { url: server.url, redis, step }
}

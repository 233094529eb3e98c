/** Holds a lock with a client that has its own telemetry SDK, until the parent process asks for the release. */
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { Redis } from 'ioredis'
import { LockClient } from '../../../../src/index.ts'
import { instrument } from '../../../../src/opentelemetry/index.ts'

const [url, key] = process.argv.slice(2) as [string, string]
const exporter = new InMemorySpanExporter()
const started: { spanId: string; traceId: string; name: string }[] = []
const tracerProvider = new BasicTracerProvider({
  spanProcessors: [
    new SimpleSpanProcessor(exporter),
    {
      onStart: span => started.push({ name: span.name, ...span.spanContext() }),
      onEnd() {},
      forceFlush: async () => {},
      shutdown: async () => {},
    },
  ],
})
const redis = new Redis(url)
const locks = new LockClient(url)
instrument(locks, { tracerProvider, links: { redis } })
const lease = await locks.lock(key)
const hold = started.find(({ name }) => name === 'lock.hold')
process.send?.({ spanId: hold?.spanId, traceId: hold?.traceId, token: lease.fencingToken })
process.once('message', async () => {
  await locks.close()
  redis.disconnect()
  process.disconnect?.()
})

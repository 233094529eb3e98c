/** Tests whether the votes of a server count, by what the server reports about itself. */
import { expect, test } from 'vitest'
import { Eligibility } from '../../src/compose/quorum/eligibility.ts'
import type { Connection } from '../../src/redis/connection.ts'
import { FakeClock } from './fake-clock.ts'

/** A server that has just been restarted. It writes each change to disk before it answers. */
class Restarted {
  loading = true

  async info(section: string): Promise<string> {
    if (section === 'server') return 'uptime_in_seconds:1\r\n'
    // Redis turns its append-only file on when it has loaded the data.
    return `# Persistence\r\nloading:${this.loading ? 1 : 0}\r\naof_enabled:${this.loading ? 0 : 1}\r\n`
  }

  async config(): Promise<string[]> {
    return ['appendfsync', 'always']
  }

  get connection(): Connection {
    return { run: (ask: (redis: Restarted) => unknown) => ask(this) } as unknown as Connection
  }
}

const listener = { changed: () => {}, twin: () => undefined }

test('I4: a server that persists every write counts as soon as it has loaded its data', async () => {
  const clock = new FakeClock()
  const eligibility = new Eligibility(clock, 30_000, listener)
  const server = new Restarted()
  const looked = eligibility.look(server.connection)
  await clock.advance(1_000)
  expect(eligibility.counts).toBeUndefined()
  server.loading = false
  await clock.advance(1_000)
  await looked
  expect(eligibility.counts).toBe(true)
})

test('a server that is lost while it loads its data is not asked again', async () => {
  const clock = new FakeClock()
  const eligibility = new Eligibility(clock, 30_000, listener)
  eligibility.look(new Restarted().connection)
  await clock.advance(1)
  eligibility.forget()
  await clock.advance(1_000)
  expect(eligibility.counts).toBeUndefined()
  expect(clock.armed).toBe(0)
})

/**
 * docs/protocol.md promises that a client in another language can share locks with redis-baton, if it calls the
 * unchanged scripts. `Other` is such a client, as short as possible. Of src/, it uses only the texts of the scripts.
 */
import type { Redis } from 'ioredis'
import { expect } from 'vitest'
import { usualTexts } from '../../scripts/lua/usual-texts.ts'
import { client, plainRedis, test } from '../kit/redis.ts'
import { eventually } from '../kit/time.ts'

const inbox = 'lock:inbox:'

/**
 * A client for one lock. The key of the lock must not contain braces, because `Other` always puts the whole key between
 * braces.
 */
class Other {
  readonly messages: string[] = []
  readonly #redis: Redis
  readonly #ear: Redis
  readonly #name: string
  readonly #lock: string
  #ids = 0

  constructor(name: string, key: string) {
    this.#redis = plainRedis()
    this.#ear = plainRedis()
    this.#ear.on('message', (_channel, text) => this.messages.push(text))
    this.#name = name
    this.#lock = `lock:{${key}}`
  }

  /** Makes the claim of a new call. Its id is the client's name, followed by 16 more characters. */
  claim(): { id: string; text: string } {
    const id = `${this.#name}${String(++this.#ids).padStart(16, '0')}`
    return { id, text: `${id} 0 30000 10000 0 ${this.#name}` }
  }

  async listen(): Promise<void> {
    await this.#ear.subscribe(inbox + this.#name)
  }

  acquire(text: string, ...mode: string[]): Promise<string> {
    return this.#run('acquire', text, ...mode)
  }

  release(id: string): Promise<string> {
    return this.#run('release', id)
  }

  #run(name: 'acquire' | 'release', ...args: (string | number)[]): Promise<string> {
    return this.#redis.eval(
      usualTexts[name],
      3,
      this.#lock,
      `${this.#lock}:q`,
      `${this.#lock}:d`,
      ...args,
    ) as Promise<string>
  }
}

test('it waits for a lock that this client holds, gets it, and hands it back, in queue order', async ({ key }) => {
  const [ours, other] = [client(), new Other('ANOTHERLANG1', key)]
  await other.listen()
  const first = await ours.lock(key)
  const { id, text } = other.claim()
  expect(await other.acquire(text, 'queue')).toMatch(/^refused \d+ 1 \d{16} /)
  const third = ours.lock(key, { fair: true })
  await eventually(async () => (await ours.inspect(key)).waiters.length === 2)
  expect((await ours.inspect(key)).waiters.map(({ label }) => label)[0]).toBe('ANOTHERLANG1')

  await first.release()
  await eventually(() => other.messages.length > 0)
  const [message = ''] = other.messages
  const [word, granted, token] = message.split(' ')
  expect([word, granted]).toEqual(['handoff', id])
  expect(await ours.inspect(key)).toMatchObject({ label: 'ANOTHERLANG1', fencingToken: Number(token) })

  expect(await other.release(id)).toBe('released')
  const lease = await third
  expect(lease.via).toBe('handoff')
  expect(lease.fencingToken).toBeGreaterThan(Number(token))
  expect(Number(token)).toBeGreaterThan(first.fencingToken)
})

test('its release wakes an unfair waiter of this client, and its lock can be force-released', async ({ key }) => {
  const [ours, other] = [client(), new Other('ANOTHERLANG2', key)]
  await other.listen()
  const [one, two] = [other.claim(), other.claim()]
  expect(await other.acquire(one.text)).toMatch(/^granted \d{16}$/)
  const waiting = new Promise(resolve => ours.once('waiting', resolve))
  const wait = ours.lock(key)
  await waiting
  await other.release(one.id)
  const lease = await wait
  await lease.release()
  await other.acquire(two.text)
  expect(await ours.forceRelease(key)).toBe(true)
  await eventually(() => other.messages.length > 0)
  const [message = ''] = other.messages
  expect(message).toMatch(new RegExp(`^lost ${two.id} \\d{16} lock:{${key}}$`))
  expect(await other.release(two.id)).toBe('ended')
})

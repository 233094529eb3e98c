/**
 * Tests the server of `baton ui`: which requests it serves, what it sends, and how often it reads all locks.
 * test/program/browser tests the page.
 */
import { networkInterfaces } from 'node:os'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Memory } from '../../../cli/ui/memory.ts'
import { openOf, viewOf } from '../../../cli/ui/view.ts'
import { calls } from '../../kit/command-stats.ts'
import { client, freshKey, ownServer, plainRedis } from '../../kit/redis.ts'
import { sleep } from '../../kit/time.ts'
import { groupsSeen, picture } from '../cli/locks.ts'
import { ask, openSite, type Site, Stream, told } from './site.ts'

/** The page for all tests that do not depend on the locks in its list. */
let looking: Site
let end: (() => void) | undefined

beforeAll(async () => {
  // The pattern matches no lock, so that the page does not read the locks of other tests one by one.
  looking = await openSite([freshKey('nothing')], {}, over => {
    end = over
  })
})

afterAll(() => end?.())

describe('who is served', () => {
  test('this machine, by one of its own names and with the whole address', async () => {
    const { address } = looking
    expect(address.hostname).toBe('127.0.0.1')
    expect(await ask(address)).toMatchObject({ status: 200 })
    for (const host of ['localhost', `LOCALHOST:${address.port}`, '[::1]:1', '127.0.0.1:8080']) {
      expect(await ask(address, { headers: { host } }), host).toMatchObject({ status: 200 })
    }
    const others = [
      'evil.example',
      `evil.example:${address.port}`,
      '127.0.0.1.evil.example',
      'localhost.evil.example',
      '0.0.0.0',
    ]
    for (const host of others) expect(await ask(address, { headers: { host } }), host).toMatchObject({ status: 421 })
    const wrong = address.pathname.replace(/.\/$/, last => (last === '0/' ? '1/' : '0/'))
    for (const path of [
      '/',
      '/page.js',
      '/events',
      wrong,
      `${address.pathname}nothing`,
      `${address.pathname}..%2fserver.js`,
    ]) {
      expect(await ask(new URL(path, address)), path).toMatchObject({ status: 404 })
    }
  })

  test('nobody by another address of this machine', async () => {
    const { address } = looking
    const own = Object.values(networkInterfaces()).flatMap(list => list ?? [])
    const others = own.filter(({ family, internal }) => family === 'IPv4' && !internal).map(each => each.address)
    for (const hostname of ['127.0.0.2', ...others]) {
      const url = new URL(address)
      url.hostname = hostname
      await expect(ask(url), hostname).rejects.toThrow('ECONNREFUSED')
    }
  })

  test('every answer forbids what the page does not need, and lets no other page read it', async () => {
    const { address } = looking
    const origin = 'http://evil.example'
    for (const path of [address.pathname, `${address.pathname}page.js`, `${address.pathname}style.css`, '/']) {
      const { headers } = await ask(new URL(path, address), { headers: { origin } })
      expect(headers['content-security-policy'], path).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
          "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
      )
      expect(headers, path).toMatchObject({
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'cross-origin-resource-policy': 'same-origin',
        'cache-control': 'no-store',
      })
      expect(Object.keys(headers).filter(name => name.startsWith('access-control'))).toEqual([])
    }
    const preflight = await ask(address, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST' },
    })
    expect(Object.keys(preflight.headers).filter(name => name.startsWith('access-control'))).toEqual([])
  })
})

describe('what is sent', () => {
  test('only what is looked at: in its order, through its filter, and no more than requested', async () => {
    const name = freshKey('many')
    const holder = client({ label: 'a holder' })
    await Promise.all(['c', 'A', 'b'].map(part => holder.lock(`${name}:${part}`)))
    void client()
      .lock(`${name}:b`, { fair: true })
      .catch(() => {}) // this call rejects when the client is closed after the test
    const { address } = await openSite([`${name}*`])
    const seen = async (query: Record<string, string>) => {
      const stream = await Stream.open(address, query)
      await told(
        () => stream.table.locks === 3 && stream.table.rows.some(({ waiters }) => waiters === '1' || query['filter']),
      )
      return stream.table.rows.map(({ key }) => key.slice(name.length + 1))
    }
    expect(await seen({})).toEqual(['b', 'A', 'c'])
    expect(await seen({ sort: 'key' })).toEqual(['A', 'b', 'c'])
    expect(await seen({ sort: 'key', reversed: 'true' })).toEqual(['c', 'b', 'A'])
    // `constructor` is no sort order, although every JavaScript object has a property of this name. So the default
    // order applies.
    expect(await seen({ sort: 'constructor', rows: 'NaN' })).toEqual(['b', 'A', 'c'])
    expect(await seen({ sort: 'longestWait', rows: '1' })).toEqual(['b'])
    expect(await seen({ filter: ':a' })).toEqual(['A'])
    expect(await seen({ filter: 'HOLDER' })).toEqual(['b', 'A', 'c'])
  })

  test('a name is data, whatever it contains, and is shown with its control characters visible', async () => {
    const begin = freshKey('odd')
    const names = [
      `${begin}</script><script>alert(1)</script>`,
      `${begin}"'\`&amp;<img src=x onerror=alert(1)>`,
      `${begin}\u202eolleh\u0007\r\n\ndata: {"table":null}\n\n`,
      `${begin}${'x'.repeat(1_024 - begin.length)}`,
      `${begin}/../..?open=%00#`,
    ]
    for (const name of names) await client({ label: name.slice(0, 200) }).lock(name)
    const { address } = await openSite([`${begin}*`])
    for (const name of names) {
      const stream = await Stream.open(address, { open: name })
      await told(() => stream.table.rows.length === names.length)
      expect(stream.table.rows.map(({ key }) => key)).toEqual(names.toSorted((a, b) => (a < b ? -1 : 1)))
      expect(stream.lock).toMatchObject({ key: name })
      for (const text of [
        stream.lock?.name,
        stream.lock?.holder,
        ...stream.table.rows.map(row => row.name ?? row.key),
      ]) {
        expect(text).not.toMatch(/[\p{Cc}\p{Cf}]/u)
      }
    }
    const { body } = await ask(address)
    expect(body).not.toContain('alert(')
  })

  test('groups: what each has, why each waiter waits, and as many as the page asks for, or those that match', async () => {
    const key = freshKey('jobs')
    const odd = 'a\u202e</td>'
    const calls = [{ group: odd, groupLimit: 1 }, {}, { group: odd, groupLimit: 1 }]
    for (const [i, options] of calls.entries()) {
      const semaphore = client({ label: `web-${i}` }).semaphore(key, 2)
      semaphore.lock({ ...options, fair: true }).catch(() => {}) // the last call still waits when the test ends
      await told(async () => (await semaphore.inspect()).holds + (await semaphore.inspect()).waiters.length === i + 1)
    }
    const { address } = await openSite([`${key}*`])
    const stream = await Stream.open(address, { open: key, kind: 'semaphore' })
    await told(() => stream.lock?.groups)
    const name = 'a\\u{202e}</td>'
    expect(stream.lock).toMatchObject({
      groups: {
        rows: [
          { id: odd, cells: [name, '1', '1', '1', '1'] },
          { id: '', cells: ['–', '1', '', '1', '0'] },
        ],
        more: 0,
      },
      shared: { holders: [{ holder: 'web-0', group: name }, { holder: 'web-1' }] },
      queue: [{ waiter: 'web-2', group: name, why: 'group' }],
    })
    expect(stream.lock?.shared?.holders[1]).not.toHaveProperty('group')

    const many = Array.from({ length: 1_200 }, (_, i) => ({ group: `t${i}`, taken: 1, weight: 1, waiting: 1 }))
    const openBy = (query: Record<string, string>) =>
      openOf(picture(groupsSeen(key, many)), viewOf({ open: key, kind: 'semaphore', ...query }), new Memory())
    expect(openBy({})?.groups).toMatchObject({ rows: { length: 100 }, more: 1_100 })
    expect(openBy({ groups: '1200' })?.groups).toMatchObject({ rows: { length: 1_200 }, more: 0 })
    expect(openBy({})?.queue[0]).toMatchObject({ why: 'turn', expected: '12s' })
    const one = openBy({ within: 'T1199' })
    expect(one).toMatchObject({ groups: { rows: [{ id: 't1199' }], more: 0 }, queue: [{ group: 't1199' }], more: 0 })
    expect(one?.shared).toMatchObject({
      said: expect.stringMatching(/; 1,200 groups, 0 full$/),
      holders: { length: 1 },
    })
  })
})

describe('what it costs', () => {
  test('one survey for all viewers, and none without viewers', async () => {
    const server = await ownServer()
    const redis = plainRedis(server.url)
    const { address } = await openSite(['--interval', '100ms'], { REDIS_URL: server.url })
    // Each survey begins with the command TIME. Nothing else sends this command.
    const surveys = async () => (await calls(redis))['time'] ?? 0
    const before = await surveys()

    const streams = [await Stream.open(address), await Stream.open(address), await Stream.open(address)]
    await told(() => streams.every(({ pictures }) => pictures >= 10))
    const pictures = Math.max(...streams.map(stream => stream.pictures))
    expect((await surveys()) - before).toBeLessThanOrEqual(pictures + 3)

    for (const stream of streams) stream.close()
    // A HEAD request does not count as a viewer.
    await ask(new URL('events', address), { method: 'HEAD' })
    for (let ms = 0; ms < 20; ms++) {
      const leaving = new AbortController()
      setTimeout(() => leaving.abort(), ms)
      await fetch(new URL('events', address), { signal: leaving.signal }).then(
        () => {},
        () => {},
      )
    }
    // A survey may still be running. So wait until the number of surveys no longer grows.
    let last = -1
    await told(async () => {
      const now = await surveys()
      const same = now === last
      last = now
      if (!same) await sleep(400)
      return same
    })
    const again = await Stream.open(address)
    await told(() => again.pictures > 0)
  })
})

describe('an outage', () => {
  test('of Redis is reported with its reason and the age of the picture, and so is its end', async () => {
    const server = await ownServer()
    const { address } = await openSite([], { REDIS_URL: server.url })
    const locks = client({}, server.url)
    await locks.lock('before')
    const stream = await Stream.open(address)
    await told(() => stream.table.rows.length === 1)
    expect(stream.now.trouble).toBeNull()

    await server.kill()
    const trouble = await told(() => stream.now.trouble)
    expect(trouble).toMatch(/ECONNREFUSED|closed|reset|end/i)
    expect(stream.table.rows).toMatchObject([{ key: 'before' }])
    const { age } = stream.now
    await told(() => (stream.now.age ?? 0) > (age ?? 0))
    // A viewer that connects while Redis is away also receives the reason.
    const late = await Stream.open(address)
    await told(() => late.now.trouble)

    await server.restart()
    await told(() => stream.now.trouble === null && stream.table.rows.length === 0)
  })
})

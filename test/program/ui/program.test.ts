/** Tests `baton ui` as a program, and the only change that a request to its server can make: the release of a lock. */
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { client, freshKey, test } from '../../kit/redis.ts'
import { start } from '../cli/baton.ts'
import { ask, openSite, type Site, Stream, told } from './site.ts'

/** The site `looking` only shows locks. The site `releasing` can also release them. */
let looking: Site
let releasing: Site
const ends: (() => void)[] = []

beforeAll(async () => {
  const over = (end: () => void) => ends.push(end)
  // The pattern matches no lock, so that the page does not read the locks of other tests one by one.
  const none = freshKey('nothing')
  ;[looking, releasing] = await Promise.all([openSite([none], {}, over), openSite([none, '--allow-release'], {}, over)])
})

afterAll(() => {
  for (const end of ends) end()
})

describe('releasing', () => {
  const json = { 'content-type': 'application/json' }
  const post = ({ address }: Site, body: unknown, headers: Record<string, string> = {}) =>
    ask(new URL('release', address), {
      method: 'POST',
      headers: { ...json, origin: address.origin, ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })

  test('is not there unless it is allowed', async ({ key }) => {
    const lease = await client().lock(key)
    const site = looking
    expect(await post(site, { key, id: lease.id })).toMatchObject({ status: 404 })
    expect((await ask(site.address)).body).not.toMatch(/id="release"/)
    expect(await client().isLocked(key)).toBe(true)
  })

  test('takes a lock from the holder that was shown, and reports that here and in the terminal', async () => {
    const key = freshKey('taken')
    const holder = client({ label: 'somebody' })
    const lease = await holder.lock(key)
    const site = releasing
    const { status, body } = await post(site, { key, id: lease.id })
    expect(status).toBe(200)
    expect(JSON.parse(body)).toMatchObject({ released: true, said: expect.stringContaining('held by somebody, for ') })
    await told(() => lease.signal.aborted)
    await told(() => site.running.output().includes(`the lock ${key} was released; it was held by somebody, for `))
    expect(JSON.parse((await post(site, { key, id: lease.id })).body)).toMatchObject({ released: false })
  })

  test('is refused to other pages, to forms, and for invalid requests', async ({ key }) => {
    const lease = await client().lock(key)
    const site = releasing
    const wanted = { key, id: lease.id }
    const port = Number(site.address.port)
    for (const origin of [
      'http://evil.example',
      'null',
      '',
      `http://127.0.0.1:${port + 1}`,
      `http://localhost:${port}`,
    ]) {
      expect(await post(site, wanted, { origin }), origin).toMatchObject({ status: 403 })
    }
    const url = new URL('release', site.address)
    expect(await ask(url, { method: 'POST', headers: json, body: JSON.stringify(wanted) })).toMatchObject({
      status: 403,
    })
    expect(await ask(url, { headers: { origin: site.address.origin } })).toMatchObject({ status: 404 })
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
      expect(await post(site, wanted, { 'content-type': type }), type).toMatchObject({ status: 415 })
    }
    expect(await post(site, { key: 'x'.repeat(20_000), id: lease.id })).toMatchObject({ status: 413 })
    for (const body of ['', '{', 'null', '{}', { key }, { key, id: 1 }, { key: [key], id: lease.id }]) {
      expect(await post(site, body), JSON.stringify(body)).toMatchObject({ status: 400 })
    }
    expect(JSON.parse((await post(site, { key: 'x'.repeat(1_025), id: lease.id })).body)).toMatchObject({
      released: false,
    })
    expect(lease.held && (await client().isLocked(key))).toBe(true)
  })
})

describe('the program', () => {
  test('ends at once and with success when it is told to, with pages open', async () => {
    const { address, running } = await openSite([freshKey('nothing')])
    const [stream, gone] = [await Stream.open(address), await Stream.open(address)]
    await told(() => stream.pictures > 0)
    gone.close()
    await told(() => stream.pictures > 2)
    running.child.kill('SIGINT')
    expect(await running.ended).toMatchObject({
      code: 0,
      output: expect.stringMatching(/^\S+ shows .*\n$/),
      errors: '',
    })
  })

  test('reports in one line what it cannot do', async () => {
    const taken = await start(['ui', freshKey('nothing'), '--port', looking.address.port]).ended
    expect(taken).toMatchObject({ code: 69, output: '' })
    expect(taken.errors).toMatch(/^baton: port \d+ cannot be used: another program uses it.*\n$/)
    const bad = [['--port', '70000'], ['--port', 'x'], ['--interval', '1ms'], ['--interval', '5'], ['[z-a]']]
    const ends = await Promise.all(bad.map(args => start(['ui', ...args]).ended))
    for (const [i, { code, output, errors }] of ends.entries()) {
      expect({ code, output }, bad[i]?.join(' ')).toEqual({ code: 64, output: '' })
      expect(errors.trimEnd().split('\n')).toHaveLength(1)
    }
    const nowhere = await start(['ui'], { REDIS_URL: 'redis://:secret@127.0.0.1:1' }).ended
    expect(nowhere.code).toBe(69)
    expect(nowhere.errors).not.toContain('secret')
  })
})

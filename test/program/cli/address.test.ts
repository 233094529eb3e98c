/**
 * Tests addresses of Redis: what an address names, which of its parts may be shown, and which texts are not addresses.
 */
import { describe, expect, test } from 'vitest'
import { checkedAddress, parseAddress } from '../../../cli/address.ts'

const SECRET = 's3cret/with?all#of@them%:,&='
const encoded = encodeURIComponent(SECRET)
/**
 * Texts that the program must not show: the secret, and parts of the secret that remain if an address is parsed
 * wrongly.
 */
const secrets = [SECRET, encoded, 's3cret', '1234']

describe('what an address names', () => {
  test('one server', () => {
    const url = `rediss://me:${encoded}@db.internal:7000/3`
    const shown = { place: 'db.internal:7000', shown: 'rediss://db.internal:7000/3' }
    expect(parseAddress(url)).toEqual({ kind: 'server', url, tls: true, hasSecrets: true, ...shown })
    expect(parseAddress('redis://db')).toMatchObject({ place: 'db:6379', shown: 'redis://db', hasSecrets: false })
    expect(parseAddress('redis://[::1]:7000')).toMatchObject({ place: '[::1]:7000' })
  })

  test('one server, by its Unix socket', () => {
    const url = `unix://me:${encoded}@/run/a%20b/redis.sock?db=3`
    const shown = { place: '/run/a b/redis.sock', shown: 'unix:///run/a%20b/redis.sock' }
    expect(parseAddress(url)).toEqual({ kind: 'server', url, tls: false, hasSecrets: true, ...shown })
    expect(parseAddress('unix:///r')).toMatchObject({ place: '/r', shown: 'unix:///r', hasSecrets: false })
  })

  test('a cluster, by some of its nodes', () => {
    const shown = 'redis+cluster://10.0.0.1:7000,[fe80::1]:7001,[::1],db-2.internal'
    expect(parseAddress(shown.replace('//', `//me:${encoded}@`))).toEqual({
      kind: 'cluster',
      tls: false,
      hosts: [
        { host: '10.0.0.1', port: 7_000 },
        { host: 'fe80::1', port: 7_001 },
        { host: '::1', port: 6_379 },
        { host: 'db-2.internal', port: 6_379 },
      ],
      credentials: { username: 'me', password: SECRET },
      hasSecrets: true,
      place: shown,
      shown,
    })
    for (const end of ['', '/', '/0']) expect(parseAddress(`rediss+cluster://db${end}`)).toMatchObject({ tls: true })
  })

  test('a master by its sentinels: user and password are for the master', () => {
    const shown = 'rediss+sentinel://a,[::1]:7000/my-master.1/2'
    const forSentinels = `?sentinel_username=watcher&sentinel_password=${encoded}`
    expect(parseAddress(`${shown.replace('//', '//me:of-master@')}${forSentinels}`)).toEqual({
      kind: 'sentinel',
      tls: true,
      hosts: [
        { host: 'a', port: 26_379 },
        { host: '::1', port: 7_000 },
      ],
      name: 'my-master.1',
      database: 2,
      credentials: { username: 'me', password: 'of-master' },
      forSentinels: { username: 'watcher', password: SECRET },
      hasSecrets: true,
      place: 'rediss+sentinel://a,[::1]:7000/my-master.1',
      shown,
    })
    const least = { database: 0, credentials: {}, forSentinels: {}, hasSecrets: false }
    expect(parseAddress('redis+sentinel://a/m')).toMatchObject(least)
    expect(parseAddress(`redis+sentinel://:${encoded}@a/m/`)).toMatchObject({ credentials: { password: SECRET } })
  })
})

test.each([
  `http://:${SECRET}@example`,
  `redis://:${SECRET}@127.0.0.1:1`,
  // Without encoding, half of the password would be taken for the port.
  'redis://user:1234/s3cret@127.0.0.1:1',
  'redis://user:1234#s3cret@127.0.0.1:1',
  'redis://user:1234?s3cret@127.0.0.1:1',
  'redis://:s3cret%zz@127.0.0.1:1',
  'redis://:s3cret@',
  'redis://127.0.0.1:1/s3cret',
  'redis://127.0.0.1:1?db=s3cret',
  'redis://127.0.0.1:1/run/redis.sock',
  'redis:///1',
  'unix://user:1234/s3cret@/run/redis.sock',
  'unix://:s3cret@run/redis.sock',
  'unix:///run/redis.sock?db=s3cret',
  'unix:///%zs3cret',
  'unix:/run/redis.sock',
  '/run/redis.sock',
  's3cret@127.0.0.1',
  'localhost:6379',
  'redis://127.0.0.1:99999',
  'redis://a:1,b:2',
  ...['cluster', 'sentinel'].flatMap(kind => [
    `redis+${kind}://:${SECRET}@127.0.0.1:1/m`,
    `redis+${kind}://user:1234/s3cret@127.0.0.1:1/m`,
    `redis+${kind}://user:1234#s3cret@127.0.0.1:1/m`,
    `redis+${kind}://user:1234?s3cret@127.0.0.1:1/m`,
    `redis+${kind}://user:s3cret@1234@127.0.0.1:1/m`,
    `redis+${kind}://:s3cret%zz@127.0.0.1:1/m`,
    `redis+${kind}://:s3cret@/m`,
    `redis+${kind}://a,/m`,
    `redis+${kind}://a:0/m`,
    `redis+${kind}://a:65536/m`,
    `redis+${kind}://a:b/m`,
    `redis+${kind}://::1/m`,
    `redis+${kind}://[::g]/m`,
    `redis+${kind}://a b/m`,
    `redis+${kind}://a/m?password=s3cret`,
  ]),
  'redis+cluster://a/1',
  'redis+cluster://a?sentinel_password=s3cret',
  'redis+sentinel://a',
  'redis+sentinel://a/',
  'redis+sentinel://a/m/s3cret',
  'redis+sentinel://a/m/0/1',
  'redis+sentinel://a/s3cret%20name',
  'redis+sentinel://a/m?sentinel_password=%zz1234',
  'redis+sentinel://a/m?sentinel_password=s3cret&sentinel_password=1234',
  'redis+sentinels://a/m',
  'redis-sentinel://a/m',
])('%s is not an address: 64, the valid forms, and no secret', text => {
  let message = ''
  try {
    checkedAddress(text, '$REDIS_URL')
  } catch (error) {
    expect(error).toMatchObject({ exitCode: 64 })
    message = (error as Error).message
  }
  expect(message).toMatch(
    /^\$REDIS_URL is not an address of Redis; expected redis:\/\/.* unix:\/\/\/.*redis\+cluster:\/\/.*redis\+sentinel:\/\//,
  )
  for (const secret of secrets) expect(message).not.toContain(secret)
})

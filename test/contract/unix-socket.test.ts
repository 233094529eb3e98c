/** Tests clients that are made from the URL of a Unix socket. */
import { join } from 'node:path'
import { expect } from 'vitest'
import { client, keysWith, ownServer, plainRedis, test } from '../kit/redis.ts'
import { emptyFolder } from '../kit/temp.ts'

test('a client is made from the URL of a Unix socket, with a user and a database', async ({ key }) => {
  const path = join(await emptyFolder(), 'r é%d@is.sock')
  const { url } = await ownServer('--unixsocket', path)
  const admin = plainRedis(`${url}/3`)
  await admin.acl('SETUSER', 'me/too', 'on', '>p:w@', '~*', '&*', '+@all')
  const encoded = path.split('/').map(encodeURIComponent).join('/')
  await client({}, `unix://me%2Ftoo:p%3Aw%40@${encoded}?db=3`).lock(key)
  expect(await keysWith(admin, key)).toHaveLength(1)
  expect(await client({}, `unix://${encoded}`).isLocked(key)).toBe(false)
  expect(await client({}, { path, db: 3 }).isLocked(key)).toBe(true)
})

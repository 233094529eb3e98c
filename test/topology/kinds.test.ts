/**
 * Tests on one server that several kinds of locks share their client's connections and inbox, and that the client loads
 * only what the kinds in use need.
 */
import { createHash } from 'node:crypto'
import { expect } from 'vitest'
import { usualTexts } from '../../scripts/lua/usual-texts.ts'
import { mutex } from '../../src/kinds/mutex/mutex.ts'
import { flag } from '../kit/flag.ts'
import { Member, twin } from '../kit/member.ts'
import { freshKey, ownServer, plainRedis, redisUrl, test } from '../kit/redis.ts'
import { aclRule } from '../kit/rights.ts'
import { eventually } from '../kit/time.ts'

test('two connections serve all kinds', async () => {
  const { url } = await ownServer()
  const member = new Member(url)
  await Promise.all([mutex, twin, flag].map(kind => member.lock(kind, freshKey())))
  // Two connections belong to the lock client. The third one is this test's own, on which it sends INFO.
  expect(await plainRedis(url).info('clients')).toContain('connected_clients:3')
})

test('I7 a grant for an unknown id is given back to the kind whose lock it is', async ({ key }) => {
  const member = new Member(redisUrl())
  const redis = plainRedis()
  const kept = await member.lock(mutex, key)
  await (await member.lock(twin, key)).release()
  const client = kept.id.slice(0, 12)
  const lock = `lock:%twin/{${key}}`
  const stray = `${client}nobody-s-own-id-`
  await redis.eval(usualTexts.acquire, 1, lock, `${stray} 0 60000 60000 0 x`)
  expect(await member.session.locks(twin).kind.inspection.isLocked(key)).toBe(true)
  await redis.publish(`lock:inbox:${client}`, `handoff ${stray} 1 ${lock}`)
  await eventually(async () => !(await member.session.locks(twin).kind.inspection.isLocked(key)))
  expect(kept.held).toBe(true)
})

test('only the scripts of the kinds in use are loaded, and only their rights are needed', async () => {
  const { url, port } = await ownServer()
  const admin = plainRedis(url)
  await admin.acl('SETUSER', 'flags', 'on', '>pw', ...aclRule([flag]))
  const member = new Member({ host: '127.0.0.1', port, username: 'flags', password: 'pw' })
  await (await member.lock(flag, freshKey())).release()
  const sha1 = createHash('sha1').update(usualTexts.acquire).digest('hex')
  expect(await admin.script('EXISTS', sha1)).toEqual([0])
  expect(member.errors).toEqual([])
})

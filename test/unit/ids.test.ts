/** Tests that ids cannot be guessed, and that an id tells Redis which inbox gets the message of its grant. */
import { expect, test } from 'vitest'
import { CLIENT_ID_LENGTH } from '../../src/kind.ts'
import { newClientId, randomIds } from '../../src/redis/ids.ts'

test('a client’s id is as long as lua/ expects, without a space', () => {
  for (let i = 0; i < 1_000; i++) expect(newClientId()).toMatch(new RegExp(`^[\\w-]{${CLIENT_ID_LENGTH}}$`))
})

test('a hold’s id begins with its client’s id, and has 96 random bits of its own', () => {
  const { client, next } = randomIds()
  for (let i = 0; i < 1_000; i++) expect(next()).toMatch(new RegExp(`^${client}[\\w-]{16}$`))
})

test('no id comes twice, even after the pool was filled several times', () => {
  const { next } = randomIds()
  const ids = Array.from({ length: 20_000 }, () => next())
  expect(new Set(ids).size).toBe(ids.length)
  expect(new Set(Array.from({ length: 5_000 }, newClientId)).size).toBe(5_000)
})

test('every character of an id varies: none is wasted on a fixed pattern', () => {
  const { next } = randomIds()
  const ids = Array.from({ length: 2_000 }, () => next().slice(CLIENT_ID_LENGTH))
  for (let place = 0; place < 16; place++) expect(new Set(ids.map(id => id[place])).size).toBe(64)
})

/**
 * Tests `Rooms`. While calls wait for a key, a room keeps data about this key. For each waiting call, the room has at
 * most one note, which names the holder for which the call waits.
 */
import { expect, test } from 'vitest'
import { Rooms } from '../../../src/opentelemetry/rooms.ts'

const told = (owner: string) => ({ key: 'key', owner, holder: { label: 'somebody', heldFor: 1 } })

test('a room lasts as long as a call waits in it', () => {
  const rooms = new Rooms()
  const room = rooms.enter('key')
  expect(rooms.enter('key')).toBe(room)
  rooms.leave('key', room)
  expect(rooms.find('key')).toBe(room)
  rooms.leave('key', room)
  expect(rooms.find('key')).toBeUndefined()
  expect(rooms.enter('key')).not.toBe(room)
})

test('calls that give up leave no more notes behind than there are calls', () => {
  const rooms = new Rooms()
  const room = rooms.enter('key')
  for (let i = 0; i < 1_000; i++) {
    rooms.enter('key')
    room.note(told(`gives up ${i}`))
    rooms.leave('key', room)
  }
  rooms.enter('key')
  room.note(told('waits'))
  const left = Array.from({ length: 1_000 }, (_, i) => room.take(`gives up ${i}`)).filter(Boolean)
  expect(left.length).toBeLessThanOrEqual(1)
  expect(room.take('waits')).toEqual(told('waits'))
  expect(room.take('waits')).toBeUndefined()
})

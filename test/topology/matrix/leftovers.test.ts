/**
 * Tests which containers scripts/matrix treats as left over. scripts/matrix runs the tests on many versions of the
 * server.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { hostname } from 'node:os'
import { expect, test } from 'vitest'
import { isLeftover, label } from '../../../scripts/matrix/leftovers.ts'

const own = label.split('=')[1]!

test('its own containers at its end, and not before', () => {
  expect([isLeftover(own, true), isLeftover(own, false)]).toEqual([true, false])
})

test('containers of a process that has ended, even if it was killed', async () => {
  const other = spawn('sleep', ['60'])
  const theirs = `${other.pid} on ${hostname()}`
  expect([isLeftover(theirs, true), isLeftover(theirs, false)]).toEqual([false, false])
  other.kill('SIGKILL')
  await once(other, 'close')
  expect([isLeftover(theirs, true), isLeftover(theirs, false)]).toEqual([true, true])
})

test('not the containers of another machine, whose processes it cannot see', () => {
  expect(isLeftover(`${process.pid} on elsewhere`, true)).toBe(false)
})

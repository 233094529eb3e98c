/** Tests what the package makes of objects of another realm, as Jest passes them: those that Node itself makes. */
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { LockConnectionError } from '../../src/errors.ts'
import { isReply } from '../../src/redis/refusals.ts'
import { withoutArguments } from '../../src/redis/without-arguments.ts'
import { callTermsOf, settingsOf } from '../../src/settings.ts'

const foreign = (code: string) => runInNewContext(code) as Error

describe('an error of another realm', () => {
  test('is one of this realm afterwards, with its name, its message and its code', () => {
    const error = withoutArguments(foreign(`Object.assign(new RangeError('no'), { code: 'ENO' })`))
    expect(error).toBeInstanceOf(Error)
    expect(error).toMatchObject({ name: 'RangeError', message: 'no', code: 'ENO' })
  })

  // This test fails if `isError(each)` becomes `each instanceof Error` in src/redis/without-arguments.ts: the error says
  // nothing.
  test('keeps the errors of each address of a host, and its cause', () => {
    const errors = `[new Error('connect ECONNREFUSED ::1:1'), new Error('connect ECONNREFUSED 127.0.0.1:1')]`
    const error = withoutArguments(foreign(`new AggregateError(${errors})`))
    expect(error).toBeInstanceOf(AggregateError)
    expect(error.message).toBe('connect ECONNREFUSED ::1:1; connect ECONNREFUSED 127.0.0.1:1')
    expect((error as AggregateError).errors.every(each => each instanceof Error)).toBe(true)
    const { cause, message } = withoutArguments(foreign(`new Error('outer', { cause: new Error('inner') })`))
    expect([message, cause instanceof Error]).toEqual(['outer: inner', true])
  })

  test('is recognised as the reply of a server, and told as a cause', () => {
    const reply = foreign(`Object.assign(new Error('NOAUTH'), { name: 'ReplyError' })`)
    expect(isReply(reply)).toBe(true)
    expect(isReply(withoutArguments(reply))).toBe(true)
    expect(new LockConnectionError('Redis refused', reply).message).toBe('Redis refused: NOAUTH')
  })
})

test('a signal that is no instance of the global AbortSignal is accepted, as in Jest with jsdom', () => {
  const signal = Object.assign(new EventTarget(), { aborted: false, reason: undefined }) as AbortSignal
  expect(callTermsOf({ signal }, settingsOf({})).signal).toBe(signal)
})

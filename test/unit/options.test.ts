/**
 * Tests that every option value in the contract is accepted, and that any other value is refused before anything is
 * sent.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LONGEST } from '../../src/clock.ts'
import { LockArgumentError } from '../../src/errors.ts'
import { callTermsOf, checkKey, checkOwner, checkRenewal, settingsOf } from '../../src/options.ts'

const settings = settingsOf({})
const lockNames = ['timeout', 'signal', 'lease', 'renew', 'maxHold', 'fair', 'fairAfter', 'headStart', 'owner', 'label']
const clientNames = [
  'prefix',
  'lease',
  'waiterTtl',
  'tokenMemory',
  'fair',
  'fairAfter',
  'timeout',
  'outageTimeout',
  'label',
]

const takers = {
  lock: { names: lockNames, take: (options: object) => callTermsOf(options, settings) as object },
  client: { names: clientNames, take: (options: object) => settingsOf(options) as object },
}

function refusal(take: () => unknown): LockArgumentError {
  try {
    take()
  } catch (error) {
    if (error instanceof LockArgumentError) return error
    throw error
  }
  throw new Error('it was accepted')
}

describe.each(Object.entries(takers))('%s options', (_, { names, take }) => {
  test('an unknown name is refused, whatever its value, and the error names it', () => {
    const unknown = fc.oneof(
      fc.string(),
      fc.constantFrom('toString', 'constructor', 'hasOwnProperty', '__proto__', 'Timeout', 'leaseMs', 'lease '),
    )
    fc.assert(
      fc.property(unknown, fc.anything(), (name, value) => {
        fc.pre(!names.includes(name))
        const options = Object.defineProperty({}, name, { value, enumerable: true })
        expect(refusal(() => take(options))).toMatchObject({ option: name, code: 'ERR_LOCK_ARGUMENT' })
      }),
    )
  })

  test('an option that is undefined counts as absent', () => {
    const absent = Object.fromEntries(names.map(name => [name, undefined]))
    expect(take(absent)).toEqual(take({}))
  })

  test('options that are no object are refused', () => {
    for (const value of [null, 5, 'text', true, [], () => {}]) {
      expect(refusal(() => take(value as object)).option).toBe('options')
    }
  })
})

test('the client’s settings are frozen, because every part of the client reads them', () => {
  expect(Object.isFrozen(settingsOf({}))).toBe(true)
})

/** Generators for the values that each kind of option accepts. All other values must be refused. */
const positive = fc.double({ min: 1, max: LONGEST, noNaN: true })
const duration = fc.oneof(fc.constant(0), fc.double({ min: 0, max: LONGEST, noNaN: true }))
const text = fc.string({ minLength: 1, maxLength: 200, unit: 'grapheme' })
const durationOrNever = fc.oneof(duration, fc.constant(Number.POSITIVE_INFINITY))
const accepted: Record<string, fc.Arbitrary<unknown>> = {
  timeout: durationOrNever,
  signal: fc.constant(new AbortController().signal),
  lease: positive,
  renew: fc.boolean(),
  maxHold: positive,
  fair: fc.boolean(),
  fairAfter: durationOrNever,
  owner: text,
  prefix: text,
  waiterTtl: positive,
  tokenMemory: duration,
  outageTimeout: positive,
  label: fc.oneof(fc.constant(''), text),
}
const isDuration = (name: string) => accepted[name] === duration || accepted[name] === positive

describe.each(Object.entries(takers))('%s options one by one', (kind, { names, take }) => {
  test.each(names.filter(name => name in accepted))('%s: what the contract allows is accepted', name => {
    fc.assert(
      fc.property(accepted[name]!, value => {
        expect(() => take({ [name]: value })).not.toThrow()
      }),
    )
  })

  test.each(names.filter(isDuration))(
    '%s: a time that is not a number, or out of range, is refused, and the error has the value',
    name => {
      const least = accepted[name] === positive ? 1 : 0
      const wrong = fc.oneof(
        fc.double({ max: least - Number.EPSILON }),
        fc.double({ min: LONGEST, minExcluded: true }),
        fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, '5', null, true, 5n, {}, []),
      )
      fc.assert(
        fc.property(wrong, value => {
          expect(refusal(() => take({ [name]: value }))).toMatchObject({ option: name, value })
        }),
      )
    },
  )

  const typed = names.filter(name => name in accepted && !isDuration(name))
  test.each(typed)(`%s: a value of another type is refused (${kind})`, name => {
    for (const value of [null, accepted[name] === durationOrNever ? -7 : 7, {}, [], Symbol('x')]) {
      expect(refusal(() => take({ [name]: value }))).toMatchObject({ option: name, value })
    }
  })
})

describe('headStart', () => {
  test('is accepted if there is a queue: with fair or fairAfter, of the call or of the client, and by default', () => {
    fc.assert(
      fc.property(duration, headStart => {
        for (const options of [{}, { fair: true }, { fairAfter: 5 }]) {
          expect(callTermsOf({ headStart, ...options }, settings)).toMatchObject({ headStart })
          expect(callTermsOf({ headStart }, settingsOf(options))).toMatchObject({ headStart })
        }
      }),
    )
  })

  test('is refused without a queue', () => {
    const never = { fairAfter: Number.POSITIVE_INFINITY }
    expect(refusal(() => callTermsOf({ headStart: 5, ...never }, settings)).option).toBe('headStart')
    expect(refusal(() => callTermsOf({ headStart: 5 }, settingsOf(never))).option).toBe('headStart')
    const fair = settingsOf({ fair: true, ...never })
    expect(refusal(() => callTermsOf({ headStart: 5, fair: false }, fair)).option).toBe('headStart')
    expect(callTermsOf({ headStart: 5 }, fair)).toMatchObject({ headStart: 5 })
  })
})

describe('defaults', () => {
  test('without `lease`, the client’s lease is used and renewed; with it, the lease is renewed only if `renew` is true', () => {
    expect(callTermsOf({}, settingsOf({ lease: 5_000 }))).toMatchObject({ lease: 5_000, renew: true })
    expect(callTermsOf({ lease: 700 }, settings)).toMatchObject({ lease: 700, renew: false })
    expect(callTermsOf({ lease: 700, renew: true }, settings)).toMatchObject({ lease: 700, renew: true })
    expect(callTermsOf({ renew: false }, settings)).toMatchObject({ lease: 30_000, renew: false })
  })

  test('fair, fairAfter and timeout come from the client, unless the call has its own', () => {
    const eager = settingsOf({ fairAfter: 9, timeout: 8 })
    expect(callTermsOf({}, eager)).toMatchObject({ fair: false, fairAfter: 9, timeout: 8 })
    expect(callTermsOf({ fairAfter: 1, timeout: 0 }, eager)).toMatchObject({ fairAfter: 1, timeout: 0 })
    expect(callTermsOf({ fair: true }, eager)).toMatchObject({ fair: true, fairAfter: undefined })
    expect(callTermsOf({ fair: false }, settingsOf({ fair: true }))).toMatchObject({ fair: false, fairAfter: 50 })
    const never = { fairAfter: Number.POSITIVE_INFINITY }
    expect(callTermsOf(never, eager).fairAfter).toBeUndefined()
    expect(callTermsOf({}, settingsOf(never)).fairAfter).toBeUndefined()
  })

  test('are those of the contract', () => {
    expect(settings).toMatchObject({
      prefix: 'lock',
      lease: 30_000,
      waiterTtl: 10_000,
      tokenMemory: 600_000,
      fair: false,
      fairAfter: 50,
      outageTimeout: 15_000,
    })
    expect(settings.timeout).toBeUndefined()
    expect(settings.label).toMatch(/^.+:\d+$/)
  })

  test('a lease is a whole number of ms, never longer than asked for', () => {
    expect(callTermsOf({ lease: 1_000.9 }, settings).lease).toBe(1_000)
    expect(settingsOf({ lease: 1_000.9 }).lease).toBe(1_000)
  })
})

describe.each([
  ['key', checkKey],
  ['owner', checkOwner],
])('%s', (option, check: (value: unknown) => void) => {
  test('any well-formed string of 1 to 1,024 UTF-8 bytes is accepted', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 300, unit: 'grapheme' }), value => {
        fc.pre(Buffer.byteLength(value) <= 1024)
        expect(() => check(value)).not.toThrow()
      }),
    )
    expect(() => check('é'.repeat(512))).not.toThrow()
  })

  test('any other value is refused', () => {
    for (const value of ['', 'x'.repeat(1025), 'é'.repeat(513), '\ud800', 5, null, undefined, {}, Symbol('key')]) {
      expect(refusal(() => check(value))).toMatchObject({ option })
    }
  })
})

test('a renewal takes a time of at least 1 ms', () => {
  for (const ms of [1, 1.5, LONGEST]) expect(() => checkRenewal(ms)).not.toThrow()
  for (const ms of [0, -1, Number.NaN, LONGEST + 1, '5', null])
    expect(refusal(() => checkRenewal(ms)).option).toBe('ms')
})

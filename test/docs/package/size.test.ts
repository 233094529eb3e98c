import { describe, expect, test } from 'vitest'
import { programs, sizeOf } from '../../../scripts/size.ts'

/**
 * The size of the library in bytes, as `npm run size` has printed it: minified, and without its dependencies. A change may
 * add up to `ROOM` to it; CONTRIBUTING.md ("Size") says what to do about more, and why the size is above the goal of 30 KB.
 */
const STOOD_AT = 219_200
const ROOM = 2_000

describe('what a program that bundles the library gets', () => {
  test('hardly grows, minified, before dependencies', async () => {
    const { minified, files } = await sizeOf(programs['redis-baton'])
    expect([...files.keys()]).toContain('src/client.ts')
    expect(minified, '`npm run size` says what weighs; CONTRIBUTING.md says what to do').toBeLessThanOrEqual(
      STOOD_AT + ROOM,
    )
  })

  test('contains only what it imports: one error class comes without the client', async () => {
    const { minified, files } = await sizeOf(programs['redis-baton, LockTimeoutError alone'])
    expect([...files.keys()].filter(file => files.get(file) !== 0)).toEqual(['src/errors.ts'])
    expect(minified).toBeLessThan(2_000)
  })
})

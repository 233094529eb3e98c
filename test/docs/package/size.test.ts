import { describe, expect, test } from 'vitest'
import { programs, sizeOf } from '../../../scripts/size.ts'

/**
 * The present size of the library in bytes: minified, and without its dependencies. If the library grows, a test fails.
 * CONTRIBUTING.md ("Size") says why it is larger than the goal of 30 KB.
 */
const STANDS_AT = 227_600

describe('what a program that bundles the library gets', () => {
  test('does not grow, minified, before dependencies', async () => {
    const { minified, files } = await sizeOf(programs['redis-baton'])
    expect([...files.keys()]).toContain('src/client.ts')
    expect(minified, '`npm run size` says what weighs').toBeLessThanOrEqual(STANDS_AT)
  })

  test('contains only what it imports: one error class comes without the client', async () => {
    const { minified, files } = await sizeOf(programs['redis-baton, LockTimeoutError alone'])
    expect([...files.keys()].filter(file => files.get(file) !== 0)).toEqual(['src/errors.ts'])
    expect(minified).toBeLessThan(2_000)
  })
})

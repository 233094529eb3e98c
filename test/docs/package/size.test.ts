import { describe, expect, test } from 'vitest'
import { programs, sizeOf } from '../../../scripts/size.ts'

/**
 * The present size in bytes, so that the test notices any growth. The goal of 30 KB is missed: the code for more than
 * one server is larger than that (CONTRIBUTING.md, "Size").
 */
const STANDS_AT = 171_200

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

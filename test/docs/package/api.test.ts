import { beforeAll, describe, expect, test } from 'vitest'
import { type Reference, reference, stale } from '../../../scripts/api/reference.ts'

describe('the public surface', () => {
  let current: Reference

  beforeAll(async () => {
    current = await reference()
  }, 70_000)

  test('is described: every item and option, with units, defaults, errors and since when', () => {
    expect(current.complaints, 'mend the doc comments, then run `npm run api`').toEqual([])
    expect(current.files.get('docs/api/redis-baton.md')).toContain('## LockClient')
  })

  test('is what the committed reports and reference pages say', async () => {
    const wrong = await stale(current)
    expect(
      wrong,
      'the public surface or its comments have changed: run `npm run api`, look at the difference in ' +
        'test/docs/package/surface/ as a user of the package would, and commit both',
    ).toEqual([])
  })
})

import { beforeAll, describe, expect, test } from 'vitest'
import { type Surface, stale, surface } from '../../../scripts/api/surface.ts'

describe('the public surface', () => {
  let current: Surface

  beforeAll(async () => {
    current = await surface()
  }, 180_000)

  test('is described: every item and option, with units, defaults, errors and the version that introduced it', () => {
    expect(current.complaints, 'mend the doc comments').toEqual([])
    expect(current.reports.get('test/docs/package/surface/redis-baton.api.md')).toContain('class LockClient')
  })

  test('matches the committed reports', async () => {
    expect(
      await stale(current),
      'the public surface has changed: run `npm run api`, look at the difference in ' +
        'test/docs/package/surface/ as a user of the package would, and commit both',
    ).toEqual([])
  })
})

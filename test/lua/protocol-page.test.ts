/** docs/protocol.md contains the header of each script. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { withReference } from '../../scripts/protocol-page/reference.ts'

test('the page is current; otherwise: npx tsx scripts/protocol-page/main.ts', () => {
  const page = readFileSync(new URL('../../docs/protocol.md', import.meta.url), 'utf8')
  expect(withReference(page)).toBe(page)
})

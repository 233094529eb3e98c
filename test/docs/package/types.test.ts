import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { runNode } from '../../kit/program.ts'
import { root } from './imports.ts'

const at = (path: string) => fileURLToPath(new URL(path, root))

describe('the published declarations', () => {
  test('infer, accept and refuse what the API promises', async () => {
    const { code, output } = await runNode([
      at('node_modules/typescript/bin/tsc'),
      '-p',
      at('test/docs/package/tsconfig.types.json'),
    ])
    expect(output).toBe('')
    expect(code).toBe(0)
  }, 70_000)
})

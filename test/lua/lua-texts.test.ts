/** `npx tsx scripts/lua-texts.ts <folder>` writes the scripts for clients in other languages. */
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { runNode } from '../kit/program.ts'

const program = ['--import', 'tsx', fileURLToPath(new URL('../../scripts/lua-texts.ts', import.meta.url))]

test('writes the scripts as this client sends them, with the SHA1s in docs/protocol.md', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'redis-baton-lua-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const { code, output } = await runNode([...program, folder])
  expect({ code, output }).toEqual({ code: 0, output: `9 scripts are in ${folder}\n` })
  const page = readFileSync(new URL('../../docs/protocol.md', import.meta.url), 'utf8')
  for (const file of readdirSync(folder)) {
    const sha1 = createHash('sha1')
      .update(readFileSync(join(folder, file)))
      .digest('hex')
    const name = file.replace('.lua', '')
    expect(page).toMatch(new RegExp(`^\\| \\[${name}\\]\\(.* \\| \`${sha1}\` \\|$`, 'm'))
  }
})

test('without a folder, prints its usage', async () => {
  const { code, errors } = await runNode(program)
  expect(code).toBe(64)
  expect(errors).toContain('usage: npx tsx scripts/lua-texts.ts <folder>')
})

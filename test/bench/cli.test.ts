import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { runNode } from '../examples/program.ts'

const cwd = fileURLToPath(new URL('../..', import.meta.url))
const bench = (...args: string[]) => runNode(['--import', 'tsx', 'src/cli/main.ts', 'bench', ...args], { cwd })

describe('unusable arguments end with 64 and one line', () => {
  test.each([
    [['--rival', 'redlok'], "baton: there is no rival 'redlok'; did you mean 'redlock'?\n"],
    [
      ['--rival', 'baton-fair,floor-plublish'],
      "baton: there is no rival 'floor-plublish'; did you mean 'floor-publish'?\n",
    ],
    [
      ['--scenario', '2x8', '--scenario', '2x9-hold5'],
      "baton: there is no scenario '2x9-hold5'; did you mean '2x8-hold5'?\n",
    ],
    [
      ['--rounds', '0'],
      /^baton: option '--rounds <n>' argument '0' is invalid. It must be an integer of at least 1.\n$/,
    ],
    [['--url', 'rediss://127.0.0.1:1', '--rtt', '1'], 'baton: --rtt does not work with TLS\n'],
  ])('%s', async (args, said) => {
    const { code, output, errors } = await bench(...args)
    expect(output).toBe('')
    if (typeof said === 'string') expect(errors).toBe(said)
    else expect(errors).toMatch(said)
    expect(code).toBe(64)
  })
})

test('an address that is none ends with 69, and is not shown', async () => {
  const { code, errors } = await bench('--url', 'http://:secret@example')
  expect(errors).toMatch(/^baton: the address of Redis is not of the form redis:\/\/host:port/)
  expect(errors).not.toContain('secret')
  expect(code).toBe(69)
})

test('a server that is not there ends with 69', async () => {
  const { code, errors } = await bench('--url', 'redis://127.0.0.1:1', '--rival', 'floor-set')
  expect(errors).toMatch(/ECONNREFUSED|closed/)
  expect(code).toBe(69)
})

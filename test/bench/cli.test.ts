import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { runNode } from '../examples/program.ts'

const cwd = fileURLToPath(new URL('../..', import.meta.url))
const bench = (...args: string[]) => runNode(['--import', 'tsx', 'src/cli/main.ts', 'bench', ...args], { cwd })

describe('unusable arguments end with 64 and one line', () => {
  test.each([
    [['--rival', 'redlok'], "There is no rival 'redlok'. Did you mean 'redlock'?\n"],
    [['--rival', 'baton-fair,floor-plublish'], "There is no rival 'floor-plublish'. Did you mean 'floor-publish'?\n"],
    [['--scenario', '2x8', '--scenario', '2x9-hold5'], "There is no scenario '2x9-hold5'. Did you mean '2x8-hold5'?\n"],
    [
      ['--rounds', '0'],
      /^error: option '--rounds <n>' argument '0' is invalid. It must be an integer of at least 1.\n$/,
    ],
    [['--url', 'http://:secret@example'], '--url is not an address of the form redis://host:port\n'],
  ])('%s', async (args, said) => {
    const { code, output, errors } = await bench(...args)
    expect(output).toBe('')
    if (typeof said === 'string') expect(errors).toBe(said)
    else expect(errors).toMatch(said)
    expect(code).toBe(64)
  })
})

test('a server that is not there ends with 69', async () => {
  const { code, errors } = await bench('--url', 'redis://127.0.0.1:1', '--rival', 'floor-set')
  expect(errors).toMatch(/ECONNREFUSED|closed/)
  expect(code).toBe(69)
})

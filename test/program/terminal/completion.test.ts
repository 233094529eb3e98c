/** Tests completion in bash with the TAB key. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { client, freshKey } from '../../kit/redis.ts'
import { emptyFolder } from '../../kit/temp.ts'
import { bash, PROMPT } from './shell.ts'
import type { Terminal } from './tmux.ts'

const open = () => bash(['source <(baton completion bash)'], { columns: 160 })

/**
 * Presses TAB until the screen is as expected. One TAB may not be enough: the program looks for the names of locks for
 * two seconds at most, and a slow machine may need longer.
 */
async function tab(terminal: Terminal, expected: (screen: string) => boolean, times = 1): Promise<void> {
  for (let left = 5; ; left--) {
    await terminal.press(...Array.from({ length: times }, () => 'Tab'))
    const seen = terminal.eventually(expected, 4_000).then(() => true)
    if (left === 0 ? await seen : await seen.catch(() => false)) return
  }
}

/** Expects that bash completes `beginning` to `expected`. */
async function completed(beginning: string, expected: string): Promise<void> {
  const terminal = await open()
  await terminal.type(beginning)
  await tab(terminal, screen => screen.endsWith(`${PROMPT} ${expected}`.trimEnd()))
  expect((await terminal.cursor()).column).toBe(PROMPT.length + 1 + expected.length)
}

describe('with one TAB, if there is one way to continue', () => {
  test('a command', () => completed('baton ins', 'baton inspect '))
  test('an option', () => completed('baton run key --ti', 'baton run key --timeout '))
  test('--', () => completed('baton run key ', 'baton run key -- '))
  test('the command after it', () => completed('baton run key -- printe', 'baton run key -- printenv '))
  test('a file', () => completed('baton bench --json /etc/passw', 'baton bench --json /etc/passwd'))

  test('the name of a lock, also after a colon, which readline takes for the end of a word', async () => {
    const name = freshKey('order')
    await client().lock(`${name}:eu:1`)
    await completed(`baton inspect ${name}:e`, `baton inspect ${name}:eu:1 `)
    await completed(`baton release --force ${name}`, `baton release --force ${name}:eu:1 `)
  })

  test('a name that is not one shell word is quoted', async () => {
    const name = freshKey()
    await client().lock(`${name} & two`)
    await completed(`baton inspect ${name}`, `baton inspect ${name}\\ \\&\\ two `)
    await completed(`baton inspect '${name}`, `baton inspect '${name} & two' `)
  })
})

test('with two TABs, all ways to continue', async () => {
  const terminal = await open()
  await terminal.type('baton ')
  await tab(terminal, screen => screen.includes('inspect'), 2)
  const screen = await terminal.screen()
  for (const name of ['run', 'list', 'top', 'ui', 'release', 'bench', 'demo', 'completion', 'help']) {
    expect(screen).toMatch(new RegExp(`\\b${name}\\b`))
  }
  expect(screen).not.toContain('__complete')
})

test('a name that is a trap for the shell stays a name', async () => {
  const trap = join(await emptyFolder(), 'sprung')
  const name = freshKey()
  await client().lock(`${name}$(touch ${trap})`)
  await client().lock(`${name}\`touch ${trap}\``)
  const terminal = await open()
  await terminal.type(`baton inspect ${name}`)
  // Outside quotes, Bash escapes the `$` and the backquotes, so both names are harmless. Inside double quotes, Bash
  // would run the commands in the names, so `baton` must not offer them there.
  await tab(terminal, screen => screen.includes('\\$\\(touch') && screen.includes('\\`touch'), 2)
  await terminal.press('C-u')
  await terminal.type(`baton inspect "${name}`)
  await terminal.press('Tab', 'Tab', 'C-u')
  await terminal.enter('echo over')
  await terminal.eventually('\nover')
  expect(await terminal.screen()).not.toContain(`"${name}$`)
  expect(existsSync(trap)).toBe(false)
})

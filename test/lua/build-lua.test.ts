/** scripts/build-lua.ts: the header of a script is its interface, and is checked against the body. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import luaparse from 'luaparse'
import { describe, expect, onTestFinished, test } from 'vitest'
import { scripts } from '../../src/redis/scripts.generated.ts'

const project = fileURLToPath(new URL('../../', import.meta.url))
const files = readdirSync(join(project, 'lua')).filter(file => file.endsWith('.lua'))

function topLevelLocals(lua: string): string[] {
  return luaparse.parse(lua, { luaVersion: '5.1' }).body.flatMap(statement => {
    if (statement.type === 'LocalStatement') return statement.variables.map(({ name }) => name)
    return statement.type === 'FunctionDeclaration' ? [(statement.identifier as luaparse.Identifier).name] : []
  })
}

/** Builds a copy of lua/ in which one file was changed. */
function buildWith(file: string, change: (source: string) => string) {
  const copy = mkdtempSync(join(tmpdir(), 'baton-lua-'))
  onTestFinished(() => rmSync(copy, { recursive: true }))
  for (const part of ['lua', 'scripts', 'package.json'])
    cpSync(join(project, part), join(copy, part), { recursive: true })
  mkdirSync(join(copy, 'src/redis'), { recursive: true })
  symlinkSync(join(project, 'node_modules'), join(copy, 'node_modules'))
  const path = join(copy, 'lua', file)
  writeFileSync(path, change(readFileSync(path, 'utf8')))

  const { status, stderr } = spawnSync(process.execPath, ['--import', 'tsx', 'scripts/build-lua.ts'], {
    cwd: copy,
    encoding: 'utf8',
  })
  const generated = () => readFileSync(join(copy, 'src/redis/scripts.generated.ts'), 'utf8')
  return { status, stderr, generated }
}

describe('the generated scripts', () => {
  test.each(Object.entries(scripts))('%s: each name of the header stands for one thing', (_, { keys, args, lua }) => {
    const names: string[] = [...keys, ...args]
    expect(new Set(names).size).toBe(names.length)
    // A second local of that name, in an include, would hide what the caller passed.
    const locals = topLevelLocals(lua)
    for (const name of names) expect(locals.filter(local => local === name)).toEqual([name])
  })

  test.each(files)('%s opens with its purpose, KEYS, ARGV and every reply', file => {
    const header = readFileSync(join(project, 'lua', file), 'utf8').split(/\n(?!--)/, 1)[0]!
    expect(header).toMatch(new RegExp(`^-- ${file.replace('.lua', '')}: \\S`))
    for (const title of ['KEYS', 'ARGV', 'Replies']) expect(header).toMatch(new RegExp(`^-- ${title}\\n--   \\w`, 'm'))
  })
})

describe('the build', () => {
  test('of lua/ as it is gives the module that is in use', () => {
    const { status, generated } = buildWith('inspect.lua', source => source)
    expect(status).toBe(0)
    expect(generated()).toBe(readFileSync(join(project, 'src/redis/scripts.generated.ts'), 'utf8'))
  })

  test.each([
    {
      what: 'a name in the header that the body does not use',
      change: (source: string) => source.replace('-- ARGV\n', '-- ARGV\n--   spare  string\n'),
      problem: 'the header\'s "spare" is not used',
    },
    {
      what: 'a reply that the header does not list',
      change: (source: string) => source.replace("{ 'state',", "{ 'status',"),
      problem: 'replies "status", which the header does not list',
    },
    {
      what: 'a reply in the header that is never given',
      change: (source: string) => source.replace('-- Replies\n', '-- Replies\n--   gone  never\n'),
      problem: 'the header\'s reply "gone" is never given',
    },
    {
      what: 'a global',
      change: (source: string) => source.replace('local lockState', 'lockState'),
      problem: '"lockState" is a global',
    },
    {
      what: 'KEYS or ARGV by position',
      change: (source: string) => source.replace('if most', 'if ARGV[1] and most'),
      problem: 'KEYS and ARGV are read through the names of the header',
    },
  ])('refuses $what', ({ change, problem }) => {
    const { status, stderr } = buildWith('inspect.lua', change)
    expect(status).not.toBe(0)
    expect(stderr).toContain(`lua/inspect.lua: ${problem}`)
  })
})

/**
 * Tests scripts/build-lua.ts: the header of a script is its interface, and the build checks that the body of the script
 * agrees with the header.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import luaparse from 'luaparse'
import { describe, expect, onTestFinished, test } from 'vitest'
import { modulesOf } from '../../scripts/lua/module.ts'
import { namedScriptsOf } from './built-texts.ts'

const project = fileURLToPath(new URL('../../', import.meta.url))
const filesIn = (folder: string) => readdirSync(join(project, folder)).filter(file => file.endsWith('.lua'))
const [files, includes] = [filesIn('lua/mutex'), filesIn('lua/shared')]

function topLevelLocals(lua: string): string[] {
  return luaparse.parse(lua, { luaVersion: '5.1' }).body.flatMap(statement => {
    if (statement.type === 'LocalStatement') return statement.variables.map(({ name }) => name)
    return statement.type === 'FunctionDeclaration' ? [(statement.identifier as luaparse.Identifier).name] : []
  })
}

/** Returns the path in lua/. A name without a folder is a script of the mutex. */
function pathOf(file: string): string {
  return file.includes('/') ? file : `mutex/${file}`
}

/** Builds a copy of lua/ with these changes, and returns the module of the mutex. */
function builtWith(...changes: readonly [file: string, change: (source: string) => string][]): string {
  const copy = mkdtempSync(join(tmpdir(), 'baton-lua-'))
  onTestFinished(() => rmSync(copy, { recursive: true }))
  cpSync(join(project, 'lua'), copy, { recursive: true })
  for (const [file, change] of changes) {
    const path = join(copy, `${pathOf(file)}.lua`)
    const source = readFileSync(path, { encoding: 'utf8', flag: 'a+' })
    const changed = change(source)
    if (changed === source) throw new Error(`nothing has changed in ${file}`)
    writeFileSync(path, changed)
  }
  return modulesOf(pathToFileURL(`${copy}/`)).get('mutex') as string
}

const named = await namedScriptsOf(new URL('../../lua/', import.meta.url))

describe('the generated scripts', () => {
  test.each(Object.entries(named))('%s: no name of the header is declared twice', (_, { keys, args, lua }) => {
    const names: string[] = [...keys, ...args]
    expect(new Set(names).size).toBe(names.length)
    // Each name of the header is a local that has a value from the caller. If an included file declared a local of the
    // same name, it would hide that value.
    const locals = topLevelLocals(lua)
    for (const name of names) expect(locals.filter(local => local === name)).toEqual([name])
  })

  test.each(Object.entries(named))('%s: the locals of an include are not visible outside', (_, { lua }) => {
    const inside = ['fields', 'time', 'needed', 'latest', 'deaf', 'left', 'many', 'far']
    expect(topLevelLocals(lua).filter(name => inside.includes(name))).toEqual([])
  })

  test.each(files)('%s opens with its purpose, KEYS, ARGV if there are any, and every reply', file => {
    const header = readFileSync(join(project, 'lua/mutex', file), 'utf8').split(/\n(?!--)/, 1)[0]!
    expect(header).toMatch(new RegExp(`^-- ${file.replace('.lua', '')}: \\S`))
    const { args } = named[file.replace('.lua', '').replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())]!
    for (const title of ['KEYS', ...(args.length > 0 ? ['ARGV'] : []), 'Replies'])
      expect(header).toMatch(new RegExp(`^-- ${title}\\n--   \\w`, 'm'))
  })

  test.each(includes)('shared/%s opens with its purpose', file => {
    const header = readFileSync(join(project, 'lua/shared', file), 'utf8')
    expect(header).toMatch(new RegExp(`^-- ${file.replace('.lua', '')}: \\S`))
  })
})

/** Replaces a text, which must occur exactly once. */
function put(from: string, to: string): (source: string) => string {
  return source => {
    expect(source.split(from), from).toHaveLength(2)
    return source.replace(from, () => to)
  }
}

describe('the build', () => {
  test('of the present lua/ gives the present module', () => {
    expect(builtWith()).toBe(readFileSync(join(project, 'src/kinds/mutex/scripts.generated.ts'), 'utf8'))
  })

  test('of another kind gives a module of its own, which may use shared includes', () => {
    const folder = mkdtempSync(join(tmpdir(), 'baton-lua-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    cpSync(join(project, 'lua'), folder, { recursive: true })
    mkdirSync(join(folder, 'flag'))
    const header = [
      '-- look: looks',
      '--',
      '-- KEYS',
      '--   lock  HASH',
      '-- ARGV',
      '--',
      '-- Replies',
      '--   seen  always',
    ]
    const body = ['-- include: time', "redis.call('GET', lock)", "return 'seen ' .. now"]
    writeFileSync(join(folder, 'flag', 'look.lua'), [...header, '', ...body].join('\n'))
    const built = modulesOf(pathToFileURL(`${folder}/`))
    expect(built.get('flag')).toContain("look: {\n    keys: ['lock'],")
    expect(built.get('flag')).toContain("redis.call('TIME')")
    expect(built.get('flag')).not.toContain('acquire')
    expect(built.get('mutex')).toBe(readFileSync(join(project, 'src/kinds/mutex/scripts.generated.ts'), 'utf8'))
  })

  test.each([
    ['-- ARGV\n', '-- ARGV\n--   spare  string\n', 'the header\'s "spare" is not used'],
    ["{ 'state',", "{ 'status',", 'replies "status", which the header does not list'],
    ['local lockState', 'lockState', '"lockState" is a global'],
    ['if most', 'most = 1\nif most', 'writes "most", which it neither changes nor gives'],
    ['if most', 'if ARGV[1] and most', 'KEYS and ARGV are read through the names of the header'],
    ["redis.call('ZCOUNT', deadlines", "redis.call('ZCOUNT', lock .. ':d'", 'a key of ZCOUNT does not come from KEYS'],
  ])('refuses a script in which %j is %j: %s', (from, to, problem) => {
    expect(() => builtWith(['inspect', put(from, to)])).toThrow(`lua/mutex/inspect.lua: ${problem}`)
  })

  // Includes are inserted as text. Without the build's checks, these mistakes would go unnoticed.
  test.each([
    ['shared/life', 'if keep < needed', 'if keep < needed + ends', 'reads "ends", which it does not take'],
    // What is only set in the part for a cluster is read outside of it.
    ['shared/place', '--]]', '--]]\nredis.call(who)', 'reads "who", which it does not take'],
    ['shared/unreported', '\nclock = ', '\ntoken = 0\nclock = ', 'writes "token", which it neither changes nor gives'],
    [
      'shared/enqueue',
      '--   clock     µs       the last ticket\n',
      '',
      'its include "life" takes "clock", which is neither made here nor declared',
    ],
    ['shared/live', '-- Gives\n', '-- Gives\n--   spare  ms  nothing\n', 'nobody reads "spare", which it gives'],
    ['shared/clock', "micros  µs      the server's time\n", 'micros\n', 'cannot read "micros"'],
    ['shared/clock', 'micros  µs', 'micros  ms', '"micros" is ms here and µs elsewhere'],
    ['shared/grant', '-- include: life', '-- include: watch', 'there is no include "watch"'],
    [
      'shared/forget',
      "redis.call('UNLINK', deadlines)",
      "redis.call('UNLINK', lock .. ':d')",
      'a key of UNLINK does not come from KEYS',
    ],
    [
      'shared/place',
      "redis.call('PEXPIREAT', deadlines, keep)",
      "redis.call('PEXPIREAT', who, keep)",
      'a key of PEXPIREAT does not come from KEYS',
    ],
    [
      'permits/semaphore/queues',
      'lines = { queue }',
      "lines = { queue, queue .. 's' }",
      '"lines" does not come from KEYS',
    ],
    [
      'permits/tend',
      '{ queue = line,',
      '{ queue = client,',
      '"queue" of the include "enqueue" does not come from KEYS',
    ],
    ['leave', ', used = nil', '', 'its include "drop" takes "used", which is neither made here nor declared'],
    ['leave', 'return dropped and', 'return latest and dropped and', '"latest" is a global'],
    ['leave', 'used = nil', 'used = nil, spare = 1', 'binds "spare" for its include "drop", which does not take it'],
    ['release', 'mine = client', 'mine = heard', 'its include "drop" is given "heard", which it gives itself'],
    ['tend', 'ttl         ms', 'ttl         s', 'its include "enqueue" takes ms as "ttl", which is s here'],
  ])('refuses %s in which %j is %j: %s', (file, from, to, problem) => {
    // A name that is given has to have a value.
    const more = file === 'shared/live' ? 'spare = 0\n' : ''
    expect(() => builtWith([file, source => put(from, to)(source) + more])).toThrow(`.lua: ${problem}`)
  })

  test('refuses an include that no file includes', () => {
    const spare = '-- spare: nothing.\n--\n-- Takes\n--   now  ms  nothing\nredis.call(now)\n'
    expect(() => builtWith(['shared/spare', () => spare])).toThrow('lua/shared/spare.lua: nobody includes it')
  })
})

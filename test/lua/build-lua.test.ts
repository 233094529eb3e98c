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
    [
      'a name in the header that the body does not use',
      '-- ARGV\n',
      '-- ARGV\n--   spare  string\n',
      'the header\'s "spare" is not used',
    ],
    [
      'a reply that the header does not list',
      "{ 'state',",
      "{ 'status',",
      'replies "status", which the header does not list',
    ],
    ['a global that is written', 'local lockState', 'lockState', '"lockState" is a global'],
    [
      'a name in the header that is written',
      'if most',
      'most = 1\nif most',
      'writes "most", which it neither changes nor gives',
    ],
    [
      'KEYS or ARGV by position',
      'if most',
      'if ARGV[1] and most',
      'KEYS and ARGV are read through the names of the header',
    ],
    [
      'a key that it makes itself',
      "redis.call('ZCOUNT', deadlines",
      "redis.call('ZCOUNT', lock .. ':d'",
      'a key of ZCOUNT does not come from KEYS',
    ],
  ])('refuses %s', (_, from, to, problem) => {
    expect(() => builtWith(['inspect', put(from, to)])).toThrow(`lua/mutex/inspect.lua: ${problem}`)
  })

  // Includes are inserted as text. Without the build's checks, these mistakes would go unnoticed.
  test.each([
    [
      'reads a name of its includers that it does not take',
      'shared/life',
      'if keep < needed',
      'if keep < needed + ends',
      'reads "ends", which it does not take',
    ],
    [
      'reads outside a cluster part what is only set in one',
      'shared/place',
      '--]]',
      '--]]\nredis.call(who)',
      'reads "who", which it does not take',
    ],
    [
      'writes a name that it takes',
      'shared/unreported',
      '\nclock = ',
      '\ntoken = 0\nclock = ',
      'writes "token", which it neither changes nor gives',
    ],
    [
      'does not take a name that its include takes',
      'shared/enqueue',
      '--   clock     µs       the last ticket\n',
      '',
      'its include "life" takes "clock", which is neither made here nor declared',
    ],
    [
      'gives a name that no file reads',
      'shared/live',
      '-- Gives\n',
      '-- Gives\n--   spare  ms  nothing\n',
      'nobody reads "spare", which it gives',
      (source: string) => `${source}spare = 0\n`,
    ],
    [
      'declares a name without a type',
      'shared/clock',
      "micros  µs      the server's time\n",
      'micros\n',
      'cannot read "micros"',
    ],
    [
      'has another unit than another include',
      'shared/clock',
      'micros  µs',
      'micros  ms',
      '"micros" is ms here and µs elsewhere',
    ],
    [
      'includes a file that does not exist',
      'shared/grant',
      '-- include: life',
      '-- include: watch',
      'there is no include "watch"',
    ],
    [
      'uses a key that it makes itself',
      'shared/forget',
      "redis.call('UNLINK', deadlines)",
      "redis.call('UNLINK', lock .. ':d')",
      'a key of UNLINK does not come from KEYS',
    ],
    [
      'uses a text in the place of a key',
      'shared/place',
      "redis.call('PEXPIREAT', deadlines, keep)",
      "redis.call('PEXPIREAT', who, keep)",
      'a key of PEXPIREAT does not come from KEYS',
    ],
    [
      'gives a key that it makes itself',
      'permits/semaphore/queues',
      'lines = { queue }',
      "lines = { queue, queue .. 's' }",
      '"lines" does not come from KEYS',
    ],
    [
      'is given a text in the place of a key',
      'permits/tend',
      '{ queue = line,',
      '{ queue = client,',
      '"queue" of the include "enqueue" does not come from KEYS',
    ],
  ] as [string, string, string, string, string, ((source: string) => string)?][])(
    'refuses an include that %s',
    (_, file, from, to, problem, more = source => source) => {
      expect(() => builtWith([file, source => more(put(from, to)(source))])).toThrow(`.lua: ${problem}`)
    },
  )

  test('refuses an include that no file includes', () => {
    const spare = '-- spare: nothing.\n--\n-- Takes\n--   now  ms  nothing\nredis.call(now)\n'
    expect(() => builtWith(['shared/spare', () => spare])).toThrow('lua/shared/spare.lua: nobody includes it')
  })

  test.each([
    [
      'lacks a name that its include takes',
      'leave',
      ', used = nil',
      '',
      'its include "drop" takes "used", which is neither made here nor declared',
    ],
    [
      'reads a local of an include',
      'leave',
      'return dropped and',
      'return latest and dropped and',
      '"latest" is a global',
    ],
    [
      'binds a name that its include does not take',
      'leave',
      'used = nil',
      'used = nil, spare = 1',
      'binds "spare" for its include "drop", which does not take it',
    ],
    [
      'binds a name to a value that the include itself gives',
      'release',
      'mine = client',
      'mine = heard',
      'its include "drop" is given "heard", which it gives itself',
    ],
    [
      'declares another type than its include',
      'tend',
      'ttl         ms',
      'ttl         s',
      'its include "enqueue" takes ms as "ttl", which is s here',
    ],
  ])('refuses a script that %s', (_, file, from, to, problem) => {
    expect(() => builtWith([file, put(from, to)])).toThrow(`lua/${pathOf(file)}.lua: ${problem}`)
  })
})

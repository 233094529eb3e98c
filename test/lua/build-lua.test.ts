/**
 * Tests scripts/build-lua.ts: the header of a script is its interface, and the build checks that the script agrees with
 * it. Functions stand where the script uses them.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { compiledFrom, type Kinds, textOf } from '../../scripts/lua/bundle.ts'
import { modulesOf } from '../../scripts/lua/module.ts'
import { renamed } from '../../scripts/lua/short-names.ts'

const project = fileURLToPath(new URL('../../', import.meta.url))
const lua = pathToFileURL(join(project, 'lua/'))
const folders = ['mutex', 'permits']

function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'baton-lua-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

/** Builds a copy of lua/ in which one file has changed. */
function buildWith(file: string, change: (source: string) => string): void {
  const copy = emptyFolder()
  cpSync(fileURLToPath(lua), copy, { recursive: true })
  const path = join(copy, `${file}.lua`)
  writeFileSync(path, change(readFileSync(path, { encoding: 'utf8', flag: 'a+' })))
  modulesOf(pathToFileURL(`${copy}/`))
}

/** Returns the texts of scripts that consist of these files, with their full names, by the names of the kinds. */
function textsOf(files: Readonly<Record<string, readonly string[]>>, kinds: Kinds): Record<string, string> {
  const folder = emptyFolder()
  for (const [file, lines] of Object.entries(files)) {
    mkdirSync(join(folder, dirname(file)), { recursive: true })
    writeFileSync(join(folder, `${file}.lua`), lines.join('\n'))
  }
  const { compiled } = compiledFrom(pathToFileURL(`${folder}/`), () => new Map(), kinds)
  return Object.fromEntries([...compiled].map(([kind, [script]]) => [kind, textOf(script!)]))
}

describe('the generated modules', () => {
  test.each(folders)('%s: of the present lua/', folder => {
    const module = readFileSync(join(project, `src/kinds/${folder}/scripts.generated.ts`), 'utf8')
    expect(modulesOf(lua).get(folder)).toBe(module)
  })

  test.each([...compiledFrom(lua).compiled].flatMap(([kind, scripts]) => scripts.map(script => ({ kind, script }))))(
    '$kind: with the full names again, the short text of $script.name is the long one',
    ({ kind, script: { name, body } }) => {
      const { names } = compiledFrom(lua)
      expect(new Set(names.values()).size).toBe(names.size)
      const long = compiledFrom(lua, () => new Map())
        .compiled.get(kind)!
        .find(each => each.name === name)!
      const full = new Map([...names].map(([name, short]) => [short, name]))
      const code = (piece: (typeof body)[number]): string[] =>
        typeof piece === 'string' ? [piece] : piece.body.flatMap(code)
      expect(renamed(body.flatMap(code), full)).toEqual(long.body.flatMap(code))
    },
  )

  test.each(folders.flatMap(folder => readdirSync(join(project, 'lua', folder)).map(file => join(folder, file))))(
    '%s opens with its purpose, KEYS, and every reply',
    path => {
      const header = readFileSync(join(project, 'lua', path), 'utf8').split(/\n(?!--)/, 1)[0]!
      expect(header).toMatch(new RegExp(`^-- ${path.replace(/^.*\/|\.lua$/g, '')}: \\S`))
      for (const title of ['KEYS', 'Replies']) expect(header).toMatch(new RegExp(`^-- ${title}\\n--   \\w`, 'm'))
    },
  )
})

describe('a script', () => {
  const header = [
    '-- look: looks',
    '--',
    '-- KEYS',
    '--   lock    HASH',
    '--   other?  HASH',
    '-- Replies',
    '--   seen    always',
  ]
  const functions = ['-- Functions.', '', 'local function second(x)', '  return x', 'end', '']
  const more = [
    'local function first(x)',
    '  return second(x)',
    'end',
    '',
    'local function third(x)',
    '  return x',
    'end',
  ]
  const code = [
    'local a = lock',
    'if other then',
    '  -- functions',
    '  a = first(third(1))',
    'end',
    '-- functions',
    "return 'seen ' .. third(a)",
  ]

  test('has each function in the block that uses it, behind those that it uses; a kind lacks keys', () => {
    const files = { common: [...functions, ...more], 'flag/look': [...header, '', ...code] }
    const { all, few } = textsOf(files, {
      all: { folder: 'flag', lacks: [] },
      few: { folder: 'flag', lacks: ['other'] },
    })
    const body = [
      ...['local a = lock', 'if other then'],
      ...['local function second(x)', '  return x', 'end', ...more, '  a = first(third(1))', 'end'],
      ...['local function third(x)', '  return x', 'end', "return 'seen ' .. third(a)"],
    ].filter(Boolean)
    // In a cluster, the key by which scripts tell the kinds apart may be left out, and the kind has to be known all the same.
    const leftOut = ['--[[cluster', "other = other or ''", '--]]']
    expect(all?.split('\n')).toEqual(['local lock, other = KEYS[1], KEYS[2]', ...leftOut, ...body])
    expect(few?.split('\n')).toEqual(['local lock = KEYS[1]', 'local other', ...body])
  })

  test('has a function that only a cluster needs between the marks', () => {
    const marked = ['--[[cluster', 'local function note(x)', '  return x', 'end', '--]]']
    const body = ['-- functions', '--[[cluster', 'note(lock)', '--]]', "return 'seen'"]
    const files = { common: marked, 'flag/look': [...header.filter(line => !line.includes('other')), '', ...body] }
    const { all } = textsOf(files, { all: { folder: 'flag', lacks: [] } })
    expect(all?.split('\n').slice(1)).toEqual([...marked, ...body.slice(1)])
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
  test.each([
    ['mutex/inspect', '-- ARGV\n', '-- ARGV\n--   spare  string\n', 'the header\'s "spare" is not used'],
    ['mutex/inspect', "{ 'state',", "{ 'status',", 'replies "status", which the header does not list'],
    [
      'mutex/inspect',
      '--   state    now',
      '--   spare    nothing\n--   state    now',
      'the header\'s reply "spare" is never given',
    ],
    ['mutex/inspect', 'local s = ', 's = ', '"s" is a global'],
    ['mutex/inspect', 'if most', 'if ARGV[1] and most', 'KEYS and ARGV are read through the names of the header'],
    [
      'mutex/inspect',
      "redis.call('ZCOUNT', deadlines",
      "redis.call('ZCOUNT', lock .. ':d'",
      'a key of ZCOUNT does not come from KEYS',
    ],
    [
      'mutex/inspect',
      "redis.call('ZCOUNT', deadlines",
      "redis.call('ZCOUNT', s.holder",
      'a key of ZCOUNT does not come from KEYS',
    ],
    ['mutex/inspect', 'local page,', "deadlines = 'a'\nlocal page,", '"deadlines" does not come from KEYS'],
    ['mutex/inspect', 'local page,', 'local show,', '"show" is a function of lua/holder.lua'],
  ])('refuses %s in which %j is %j: %s', (file, from, to, problem) => {
    expect(() => buildWith(file, put(from, to))).toThrow(`lua/${file}.lua: ${problem}`)
  })

  test.each([
    ['holder', "'HDEL', s.lock", "'HDEL', s.hold", 'a key of HDEL does not come from KEYS'],
    ['permits', 'otherLine = readers', 'otherLine = fields[1]', '"otherLine" does not come from KEYS'],
    ['lock', '  local client = id:sub(1, CLIENT_END)\n', '', '"client" is a global'],
    [
      'lock',
      'local function tick(s)',
      'local spare = 1\n\nlocal function tick(s)',
      'has something else than functions',
    ],
    [
      'lock',
      'local function tick(s)',
      'local function spare(s)\n  return s\nend\n\nlocal function tick(s)',
      'nobody uses "spare"',
    ],
    ['lock', '-- Constants\n', '-- Constants\n--   SPARE = 1  nothing\n', 'nobody uses the constant "SPARE"'],
    ['lock', '-- Constants\n', '-- Constants\n--   spare\n', 'cannot read the constant "spare"'],
  ])('refuses functions of %s in which %j is %j: %s', (file, from, to, problem) => {
    expect(() =>
      buildWith(file, source => (from.startsWith("'") ? source.replace(from, to) : put(from, to)(source))),
    ).toThrow(problem)
  })
})

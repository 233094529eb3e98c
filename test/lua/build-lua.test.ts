/**
 * Tests scripts/build-lua.ts: the header of a script is its interface, with which the script and its callers agree.
 * Functions stand where the script uses them.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { camel, KINDS, type Kinds, moduleOf, partsOf } from '../../scripts/lua/bundle.ts'
import { renamed } from '../../scripts/lua/short-names.ts'
import { type Script, unitsOf } from '../../scripts/lua/source.ts'
import { mutex } from '../../src/kinds/mutex/mutex.ts'
import { reading } from '../../src/kinds/permits/read-write.ts'
import { semaphore } from '../../src/kinds/permits/semaphore.ts'
import { mutexScripts, readWriteScripts, semaphoreScripts, textsOf } from '../../src/kinds/scripts.ts'
import { suffixOf } from '../kit/names.ts'

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
  partsOf(pathToFileURL(`${copy}/`))
}

/** Returns the texts of scripts that consist of these files, with their full names, by the names of the kinds. */
function built(files: Readonly<Record<string, readonly string[]>>, kinds: Kinds): Record<string, string> {
  const folder = emptyFolder()
  for (const [file, lines] of Object.entries(files)) {
    mkdirSync(join(folder, dirname(file)), { recursive: true })
    writeFileSync(join(folder, `${file}.lua`), lines.join('\n'))
  }
  const { heads, functions, bodies } = partsOf(pathToFileURL(`${folder}/`), () => new Map(), kinds)
  const texts = Object.entries(heads).map(([kind, head]) => [kind, textsOf(bodies['flag']!, head, functions)['look']!])
  return Object.fromEntries(texts)
}

/** Returns the signatures in an interface of src/kinds/scripts.ts: "<name>(<parameters>): <replies>". */
function signaturesIn(source: string, name: string): string[] {
  const [, base, body] = new RegExp(`interface ${name}(?: extends (\\w+))? \\{([^}]*)\\}`).exec(source)!
  const words = (text: string) => {
    const types = text.replace(/\b[A-Z]\w+\b/g, type => new RegExp(`type ${type} = (.*)`).exec(source)?.[1] ?? type)
    return [...types.matchAll(/'(\w+)'/g)].map(([, word]) => word!).sort()
  }
  const own = [...body!.matchAll(/^ {2}(\w+)\(([^)]*)\): (.*)$/gm)].map(([, script, parameters, replies]) => {
    const names = [...parameters!.matchAll(/(\.\.\.)?(\w+)(\??):/g)].map(
      ([, rest = '', each, mark]) => each! + mark + rest,
    )
    return `${script}(${names}): ${words(replies!)}`
  })
  return [...own, ...(base ? signaturesIn(source, base) : [])].sort()
}

function signatureOf({ name, args, replies }: Script): string {
  return `${camel(name)}(${args.map(arg => arg.name + arg.mark)}): ${[...replies].sort()}`
}

describe('the generated module', () => {
  test('is of the present lua/', () => {
    expect(moduleOf(lua)).toBe(readFileSync(join(project, 'src/kinds/scripts.generated.ts'), 'utf8'))
  })

  test('with the full names again, the short texts are the long ones', () => {
    const [{ names, ...short }, { names: _, ...long }] = [partsOf(lua), partsOf(lua, () => new Map())]
    expect(new Set(names.values()).size).toBe(names.size)
    const full = new Map([...names].map(([name, short]) => [short, name]))
    for (const [name, text] of Object.entries(short.functions))
      expect(
        renamed(text.split('\n'), full)
          .join('\n')
          .replace(/^--@.*\n/gm, ''),
      ).toBe(long.functions[full.get(name)!]!.replace(/^--@.*\n/gm, ''))
  })

  test.each(
    ['MutexScripts', 'PermitsScripts'].map((name, i) => ({ name, scripts: unitsOf(lua, folders).scripts[i]! })),
  )('$name takes and gives what the headers say', ({ name, scripts }) => {
    const source = readFileSync(join(project, 'src/kinds/scripts.ts'), 'utf8')
    expect(signaturesIn(source, name)).toEqual(scripts.map(signatureOf).sort())
  })

  test.each([
    { kind: mutex, folder: 0 },
    { kind: semaphore, folder: 1 },
    { kind: reading, folder: 1 },
  ])('a $kind.name has the keys of all its scripts, in their order', ({ kind: { name, suffixes, least }, folder }) => {
    const { lacks } = KINDS[name || 'mutex']!
    for (const { keys } of unitsOf(lua, folders).scripts[folder]!) {
      if (keys[0]!.mark === '...') continue
      const own = keys.filter(key => !lacks.includes(key.name))
      const words = own.map(key => key.name) as (keyof typeof suffixOf)[]
      expect(words.map(word => suffixOf[word])).toEqual(suffixes)
      expect(own.filter(key => key.mark === '').length).toBe(least)
    }
  })

  test.each([
    { folder: 0, texts: [mutexScripts] },
    { folder: 1, texts: [semaphoreScripts, readWriteScripts] },
  ])('each reply of a header is somewhere in its script: $folder', ({ folder, texts }) => {
    for (const { name, replies } of unitsOf(lua, folders).scripts[folder]!)
      for (const word of replies) {
        const given = texts.some(each => new RegExp(`'${word}[' ]`).test((each as never)[camel(name)]))
        expect(given, `${name} ${word}`).toBe(true)
      }
  })

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
    const { all, few } = built(files, {
      all: { folder: 'flag', lacks: [] },
      few: { folder: 'flag', lacks: ['other'] },
    })
    const body = [
      ...['local a=lock', 'if other then'],
      ...['local function second(x)', 'return x', 'end', ...more.map(line => line.trim()), 'a=first(third(1))', 'end'],
      ...['local function third(x)', 'return x', 'end', "return 'seen '..third(a)"],
    ].filter(Boolean)
    // The key by which scripts tell the kinds apart may be left out, and the kind has to be known all the same.
    expect(all?.split('\n')).toEqual(["local lock,other=KEYS[1],KEYS[2]or''", ...body])
    expect(few?.split('\n')).toEqual(['local lock=KEYS[1]', 'local other', ...body])
  })

  test('has a function that only a cluster needs between the marks', () => {
    const marked = ['--[[cluster', 'local function note(x)', '  return x', 'end', '--]]']
    const body = ['-- functions', '--[[cluster', 'note(lock)', '--]]', "return 'seen'"]
    const files = { common: marked, 'flag/look': [...header.filter(line => !line.includes('other')), '', ...body] }
    const { all } = built(files, { all: { folder: 'flag', lacks: [] } })
    const compact = [...marked.map(line => line.trim()), ...body.slice(1, -1), "return 'seen'"]
    expect(all?.split('\n').slice(1)).toEqual(compact)
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
    ['mutex/inspect', 'local s = ', 's = ', '"s" is a global'],
    ['mutex/inspect', 'if most', 'if ARGV[1] and most', '"ARGV" is a global'],
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
    ['mutex/inspect', 'local page, times = {}, {}', 'local page, times, show = {}, {}', '"show" is a function'],
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
    ['lock', '-- Constants\n', '-- Constants\n--   spare\n', 'lua/lock.lua: cannot read "spare"'],
  ])('refuses functions of %s in which %j is %j: %s', (file, from, to, problem) => {
    expect(() =>
      buildWith(file, source => (from.startsWith("'") ? source.replace(from, to) : put(from, to)(source))),
    ).toThrow(problem)
  })
})

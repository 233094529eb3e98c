/** Tests that the texts of the help and of the documentation say the defaults that the code has. */
import { readFileSync } from 'node:fs'
import { Command, type Option } from 'commander'
import { describe, expect, test } from 'vitest'
import { addBench } from '../../../cli/bench.ts'
import { addDashboard } from '../../../cli/dashboard.ts'
import { addDemo } from '../../../cli/demo.ts'
import { addInspect } from '../../../cli/inspect.ts'
import { addList } from '../../../cli/list.ts'
import { addRelease } from '../../../cli/release.ts'
import { addRun } from '../../../cli/run.ts'
import { showTime } from '../../../cli/times.ts'
import { addTop } from '../../../cli/top.ts'
import { addUi } from '../../../cli/ui.ts'
import { defaults } from '../../../src/settings.ts'

const read = (name: string) => readFileSync(new URL(`../../../${name}`, import.meta.url), 'utf8')

const program = new Command()
for (const add of [addRun, addInspect, addList, addTop, addUi, addRelease, addDashboard, addBench, addDemo])
  add(program)
const options = program.commands.flatMap(command =>
  command.options.map(option => [`${command.name()} ${option.long}`, option] as const),
)

/** The defaults that the program leaves to others: to the library, or to the scripts in Redis. */
const left: Readonly<Record<string, string>> = {
  'run --fair-after': showTime(defaults.fairAfter),
  'run --lease': showTime(defaults.lease),
  'run --take': '1',
  'run --group-weight': 'the share that it has, at first 1',
  'bench --rounds': '3, of --quick 1',
  'bench --seconds': '2, of --quick 1',
}

describe('the help', () => {
  test.each(options)('of %s: a default with a number is that of the code', (name, option: Option) => {
    const { defaultValue, defaultValueDescription: words, description, parseArg } = option
    const [, told] = /\(default: (.*)\)/.exec(description) ?? []
    if (told && /\d/.test(told) && !told.includes('$REDIS_URL')) expect(told).toBe(left[name])
    else expect(left).not.toHaveProperty([name])
    if (words && /\d/.test(words)) expect(parseArg?.(words, undefined)).toEqual(defaultValue)
  })

  function helpOf(command: Command): string {
    const help: string[] = []
    command.configureOutput({ writeOut: text => help.push(text) }).outputHelp()
    return help.join('')
  }

  test('says for how long baton waits for Redis', () => {
    const run = program.commands.find(command => command.name() === 'run')!
    expect(helpOf(run)).toContain(`unreachable for ${showTime(defaults.outageTimeout)} while baton waited`)
    expect(helpOf(run)).toMatch(/--prefix .*\(default: "lock"\)/s)
    expect(run.getOptionValue('prefix')).toBe(defaults.prefix)
  })

  test.each(program.commands.map(command => [command.name(), command] as const))(
    'of %s: prose fits a terminal of 80 columns',
    (_, command) => {
      // An example is one line, as it is typed.
      const prose = helpOf(command)
        .split('\n')
        .filter(line => !line.startsWith('  '))
      expect(prose.filter(line => line.length > 80)).toEqual([])
    },
  )
})

describe('of each client option with a default', () => {
  const page = read('docs/options.md')
  const source = read('src/options.ts')
  const [, ofClient = ''] = /interface ClientOptions \{(.*?)\n\}/s.exec(source) ?? []
  /** The comment of each option, by the option's name. */
  const comments = new Map([...ofClient.matchAll(/\/\*\*(.*?)\*\/\s+(\w+)\?/gs)].map(([, text, name]) => [name, text]))

  test.each(Object.entries(defaults))('%s: the reference and the page say %s', (name, value) => {
    const text = typeof value === 'string' ? `'${value}'` : `${value}`
    const [, told] = /@defaultValue `(.*)`/.exec(comments.get(name) ?? '') ?? []
    expect(told?.replaceAll('_', '')).toBe(text)
    const rows = [...page.matchAll(/^\| (`.*?) \| (.*?) \|/gm)]
    const row = rows.find(([, names = '']) => names.split(', ').includes(`\`${name}\``))!
    const at = row[1]!.split(', ').indexOf(`\`${name}\``)
    expect(row[2]!.split(', ')[at]?.replaceAll(/[`_]/g, '')).toBe(text)
  })

  test('the page about the shell says how long it takes until a command is queued', () => {
    expect(read('docs/shell.md')).toContain(`waited for ${defaults.fairAfter} ms (\`--fair-after\`)`)
  })
})

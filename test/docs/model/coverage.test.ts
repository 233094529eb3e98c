/**
 * Checks that the models in spec/ cover the scripts and files that they name. It does not check whether the models
 * themselves are right: `npm run model` does.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { models } from '../../../scripts/models.ts'

const root = new URL('../../../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, root), 'utf8')

const page = read('docs/model.md')

test('every model of spec/ is checked', () => {
  const files = readdirSync(new URL('spec/', root))
  expect(models.map(({ file }) => file).sort()).toEqual(files.sort())
})

describe.each(models)('$file', ({ file, scripts, configurations, mutants }) => {
  const model = read(`spec/${file}`)
  const subjects = [...configurations, ...mutants]

  test('says how it models every script', () => {
    const names = readdirSync(new URL(scripts, root)).filter(name => name.endsWith('.lua'))
    expect(names.length).toBeGreaterThan(7)
    expect(names.filter(name => !model.includes(`${scripts}${name}`))).toEqual([])
  })

  test('every file that it names exists', () => {
    const named = filesIn(model)
    expect(named.length).toBeGreaterThan(8)
    expect(named.filter(path => !existsSync(new URL(path, root)))).toEqual([])
  })

  test('every switch that is set exists in it', () => {
    const names = [...new Set(subjects.flatMap(({ defines }) => defines).map(text => text.replace(/=.*/, '')))]
    expect(names.length).toBeGreaterThan(20)
    const unknown = names.filter(name => !new RegExp(`^#(ifdef|ifndef|if) ${name}\\b`, 'm').test(model))
    expect(unknown).toEqual([])
  })

  test('every mutant is in its list', () => {
    const list = /Each mutant removes one rule: ([\w,\s*]+)\./.exec(model)?.[1]
    const listed = list?.split(/[^\w]+/).sort()
    expect(mutants.map(({ name }) => name.toUpperCase().replaceAll('-', '_')).sort()).toEqual(listed)
  })

  test('every configuration and every mutant is on the page, with its switches', () => {
    const row = ({ name, defines }: (typeof subjects)[number]) =>
      new RegExp(`^\\| \`?${name}\`? \\| \`${defines.filter(each => each !== 'PROGRESS').join(' ')}\` \\| `, 'm')
    expect(subjects.filter(subject => !row(subject).test(page)).map(({ name }) => name)).toEqual([])
  })

  test('the page tells what happens without the rule of each mutant', () => {
    const untold = mutants.filter(
      ({ name }) => !new RegExp(`^\\| \`${name}\` \\| [^|]+ \\| [^|]+ \\|$`, 'm').test(page),
    )
    expect(untold.map(({ name }) => name)).toEqual([])
  })
})

test('every file that the page names exists', () => {
  const named = filesIn(page)
  expect(named.length).toBeGreaterThan(8)
  expect(named.filter(path => !existsSync(new URL(path, root)))).toEqual([])
})

function filesIn(text: string): string[] {
  return [...new Set(text.match(/\b(?:lua|src|scripts|spec|docs)\/[\w./-]+\.(?:lua|ts|pml|md)\b/g))]
}

/** The model keeps up with what it models. Whether it holds is checked by `npm run model`. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const root = new URL('../../../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, root), 'utf8')

const model = read('spec/baton.pml')
const runner = read('scripts/run-model.ts')
const page = read('docs/model.md')

const scripts = readdirSync(new URL('lua/', root)).filter(name => name.endsWith('.lua'))

test.each(scripts)('the model says what becomes of lua/%s', name => {
  expect(model).toContain(`lua/${name}`)
})

test('every file that the model or its page names exists', () => {
  const named = new Set(`${model}${page}`.match(/\b(?:lua|src|scripts|spec|docs)\/[\w./-]+\.(?:lua|ts|pml|md)\b/g))
  expect(named.size).toBeGreaterThan(scripts.length)
  expect([...named].filter(path => !existsSync(new URL(path, root)))).toEqual([])
})

test('every switch that the runner sets is one of the model', () => {
  const switches = [...runner.matchAll(/\bof\('[^']*', '([^']*)'\)/g)].flatMap(([, text]) => text!.split(' '))
  expect(switches.length).toBeGreaterThan(20)
  const names = [...new Set(switches.map(text => text.replace(/=.*/, '')))]
  const unknown = names.filter(name => !new RegExp(`^#(ifdef|ifndef|if) ${name}\\b`, 'm').test(model))
  expect(unknown).toEqual([])
})

test('every configuration and every mutant of the runner is on the page', () => {
  const names = [...runner.matchAll(/\bof\('([^']*)'/g)].map(([, name]) => name!)
  expect(names.filter(name => !page.includes(name))).toEqual([])
})

/**
 * Checks that the test runner would run every file of test/contract over every topology, apart from the exceptions in
 * not-repeated.ts.
 */
import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { testFilesIn } from '../../scripts/test-files.ts'
import { topologies } from '../kit/topologies/index.ts'
import { needServers, notRepeated, withIoredis5 } from './not-repeated.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs')

const withServers = ['standalone', 'cluster', 'sentinel', 'tls', 'acl', 'quorum']
const promised = [...withServers, 'memory']

/**
 * What `npm run test:topologies` runs. Each entry is the name of a topology and a contract file, separated by a space.
 * The first list is for ioredis 6, and the second list is for ioredis 5.
 */
let planned: string[]
let plannedWithIoredis5: string[]
/**
 * The contract files that should run over every topology. The files in scenarios and opentelemetry use one server, so
 * they are not in this list.
 */
let files: string[]

beforeAll(async () => {
  files = testFilesIn('test/contract')
  const args = [vitest, 'list', '--filesOnly', '--json', '--config', 'vitest.topologies.config.ts']
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root })
  const listed = JSON.parse(stdout.slice(stdout.indexOf('['))) as { file: string; projectName: string }[]
  const lines = listed
    .map(({ file, projectName }) => `${projectName} ${relative(root, file)}`)
    .filter(line => line.includes(' test/contract/'))
  planned = lines.filter(line => !line.includes(', ioredis 5 '))
  plannedWithIoredis5 = lines.filter(line => line.includes(', ioredis 5 ')).map(line => line.replace(', ioredis 5', ''))
})

test('the topologies are those that are promised', () => {
  expect(topologies.map(({ name }) => name)).toEqual(promised)
})

test('every contract file runs over every topology, or has a reason why not', () => {
  const combinations = promised.flatMap(topology =>
    files.map(file => ({ topology, file, exception: notRepeated.find(each => each.file === file) })),
  )
  const wanted = combinations.filter(({ topology, exception }) => exception?.on.includes(topology) ?? true)
  expect(files.length).toBeGreaterThan(20)
  expect(planned.sort()).toEqual(wanted.map(({ topology, file }) => `${topology} ${file}`).sort())
})

test('with ioredis 5, how connections are made runs over every topology', () => {
  const made = withServers.map(topology => `${topology} test/contract/connection-source.test.ts`)
  expect(plannedWithIoredis5).toEqual(expect.arrayContaining(made))
  expect(Object.keys(withIoredis5)).toEqual(withServers)
})

test('the single tests that need a server have a reason, and are in files that run in memory', () => {
  for (const { file, because } of needServers) {
    expect(planned).toContain(`memory ${file}`)
    expect(because.length).toBeGreaterThan(60)
  }
})

describe.each(notRepeated)('the exception $file', ({ file, on, because }) => {
  test('is a contract file, runs somewhere, and has a reason', () => {
    expect(files).toContain(file)
    expect(on.length).toBeGreaterThan(0)
    expect(promised).toEqual(expect.arrayContaining([...on]))
    expect(because.length).toBeGreaterThan(60)
  })
})

/**
 * Tests the workflows, which only the host of the repository can run. Everything that the workflows name must exist,
 * and must agree with the rest of the project.
 */
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { parseDocument } from 'yaml'
import { nodes } from '../../../scripts/matrix/nodes.ts'
import { servers } from '../../../scripts/matrix/servers.ts'
import { root } from './imports.ts'

interface Step {
  readonly uses?: string
  readonly run?: string
  readonly with?: Readonly<Record<string, unknown>>
}

interface Job {
  readonly steps: readonly Step[]
  readonly permissions?: Readonly<Record<string, string>>
  readonly 'timeout-minutes'?: number
  readonly env?: Readonly<Record<string, string>>
  readonly services?: Readonly<Record<string, { readonly image: string }>>
  readonly strategy?: { readonly matrix: { readonly node?: number[]; readonly include?: object[] } }
}

interface Workflow {
  readonly permissions: Readonly<Record<string, string>>
  readonly concurrency?: { readonly group: string }
  readonly jobs: Readonly<Record<string, Job>>
}

const read = (path: string) => readFile(new URL(path, root), 'utf8')

/** Parses a YAML document. A duplicate key or an unknown tag is an error. */
async function yaml(path: string): Promise<unknown> {
  const document = parseDocument(await read(path), { strict: true, uniqueKeys: true })
  expect([...document.errors, ...document.warnings], path).toEqual([])
  return document.toJS()
}

const workflows = new Map<string, Workflow>()
let engines: string
let scripts: readonly string[]

beforeAll(async () => {
  const folder = '.github/workflows'
  for (const name of await readdir(new URL(folder, root)))
    workflows.set(name, (await yaml(`${folder}/${name}`)) as Workflow)
  const manifest = JSON.parse(await read('package.json')) as { engines: { node: string }; scripts: object }
  engines = manifest.engines.node
  scripts = Object.keys(manifest.scripts)
})

const jobs = () =>
  [...workflows].flatMap(([file, { jobs }]) =>
    Object.entries(jobs).map(([name, job]) => [`${file}: ${name}`, job] as const),
  )
const steps = () => jobs().flatMap(([, job]) => job.steps)
const job = (file: string, name: string) => workflows.get(file)!.jobs[name]!

test('each job has a time limit, and only the rights that it needs', () => {
  expect([...workflows.keys()].sort()).toEqual(['ci.yml', 'release.yml', 'site.yml', 'version.yml'])
  for (const [file, { permissions, concurrency }] of workflows) {
    expect(permissions, file).toEqual(file === 'ci.yml' ? { contents: 'read' } : {})
    expect(concurrency?.group, file).toContain('github.workflow')
  }
  expect(
    jobs()
      .filter(([, job]) => !job['timeout-minutes'])
      .map(([name]) => name),
  ).toEqual([])
  const writing = jobs().flatMap(([name, { permissions = {} }]) =>
    Object.entries(permissions).flatMap(([right, level]) => (level === 'write' ? [`${name}: ${right}`] : [])),
  )
  expect(writing.sort()).toEqual([
    'release.yml: publish: id-token',
    'release.yml: release: contents',
    'site.yml: deploy: id-token',
    'site.yml: deploy: pages',
    'version.yml: version: contents',
    'version.yml: version: pull-requests',
  ])
})

test('all files that steps run exist', () => {
  const commands = steps().flatMap(({ run, with: inputs }) =>
    [run, inputs?.['version']].filter(text => typeof text === 'string'),
  )
  const named = commands.flatMap(text => [...text.matchAll(/\bnpm run (?:--\S+ )*([\w:]+)/g)].map(([, name]) => name))
  expect(named).toEqual(expect.arrayContaining(['test:topologies', 'site', 'changelog']))
  expect(named.filter(name => !scripts.includes(name!))).toEqual([])
  const files = commands
    .flatMap(text => text.match(/(?:^|\s)(?:\.ci|test|scripts)\/\S+/g) ?? [])
    .map(path => path.trim())
  expect(files).toEqual(['.ci/run', '.ci/run', 'test/topology/matrix/server.test.ts'])
  expect(files.filter(path => !existsSync(new URL(path, root)))).toEqual([])
})

test('actions have the tag of a version', () => {
  const uses = steps().flatMap(({ uses }) => uses ?? [])
  expect(uses.length).toBeGreaterThan(10)
  expect(uses.filter(name => !/^[\w-]+\/[\w-]+@v\d+(\.\d+)*$/.test(name))).toEqual([])
})

describe('what is tested on what', () => {
  test('Node: everything on the lowest version that package.json admits, the tests on the later versions that the project supports', () => {
    const version = (one: Job) =>
      one.steps.find(({ uses }) => uses?.startsWith('actions/setup-node@'))?.with?.['node-version']
    const lowest = Number(/^>=(\d+)/.exec(engines)![1])
    for (const name of ['check', 'around']) expect(version(job('ci.yml', name))).toBe(lowest)
    const { node } = job('ci.yml', 'test').strategy!.matrix
    expect(node).toEqual([22, 24])
    const known = nodes.map(({ version }) => Number.parseInt(version, 10))
    expect([lowest, ...node!].filter(major => !known.includes(major))).toEqual([])
    const others = jobs().flatMap(([, one]) => version(one) ?? [])
    expect(others.filter(major => typeof major === 'number' && !known.includes(major))).toEqual([])
  })

  test('servers: the rows of the matrix that need no arguments, by their images', () => {
    const { strategy, services, env } = job('ci.yml', 'servers')
    const plain = servers.filter(({ args }) => args.length === 0)
    expect(strategy!.matrix.include).toEqual(plain.map(({ name, image }) => ({ name, image })))
    const image = ['$', '{{ matrix.image }}'].join('')
    expect(services!['server']!.image).toBe(image)
    expect(env).toMatchObject({ BATON_REDIS_IMAGE: image, BATON_EXPECT_SERVER: image.replace('image', 'name') })
  })
})

/**
 * Tests four copies of the package in one process. There are two installations, as in an application that has two
 * versions. Each installation is loaded by `import` and by `require`, which makes two copies. Each copy locks, and each
 * recognises the errors and the clients of the other copies.
 */
import { cp, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runNode } from '../../kit/program.ts'
import { freshKey, redisUrl } from '../../kit/redis.ts'
import { root } from './imports.ts'

const at = (path: string) => fileURLToPath(new URL(path, root))

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(await realpath(tmpdir()), 'redis-baton-copies-'))
  for (const owner of ['.', 'node_modules/other']) {
    const installed = join(folder, owner, 'node_modules/redis-baton')
    await mkdir(installed, { recursive: true })
    await cp(at('package.json'), join(installed, 'package.json'))
    await cp(at('dist'), join(installed, 'dist'), { recursive: true })
  }
  for (const name of ['ioredis', 'eventemitter3', 'p-timeout', '@opentelemetry']) {
    await symlink(at(`node_modules/${name}`), join(folder, 'node_modules', name))
  }
  await writeFile(join(folder, 'node_modules/other/load.cjs'), `exports.required = require('redis-baton')`)
  await writeFile(join(folder, 'node_modules/other/load.mjs'), `export * from 'redis-baton'`)
})

afterAll(() => rm(folder, { recursive: true, force: true }))

/** Runs a program. Its variable `copies` contains all copies of the package, by name. */
async function withCopies(program: string): Promise<unknown> {
  const head = `
    import { createRequire } from 'node:module'
    import * as imported from 'redis-baton'
    import * as other from './node_modules/other/load.mjs'
    import loaded from './node_modules/other/load.cjs'
    const required = createRequire(import.meta.url)('redis-baton')
    const copies = { imported, required, other, otherRequired: loaded.required }
    const [url, key] = process.argv.slice(2)
    const print = value => console.log(JSON.stringify(value))
  `
  const file = join(folder, `${Math.random().toString(36).slice(2)}.mjs`)
  await writeFile(file, head + program)
  const { code, output, errors } = await runNode([file, redisUrl(), freshKey('copies')], { cwd: folder })
  expect(code, errors).toBe(0)
  return JSON.parse(output)
}

test('there are four copies, so that the tests below are meaningful', async () => {
  expect(await withCopies(`print(new Set(Object.values(copies).map(copy => copy.LockError)).size)`)).toBe(4)
})

describe('instanceof', () => {
  test('holds for the class and its base in every other copy, and for no other class', async () => {
    const wrong = await withCopies(`
      const errorsOf = copy => [
        new copy.LockError('MY_CODE', 'mine'),
        new copy.LockTimeoutError('key', 5),
        new copy.LockLostError('key', 'expired'),
        new copy.LockConnectionError('out of reach'),
        new copy.LockClosedError('key'),
        new copy.LockArgumentError('lease', 0, 'more'),
      ]
      const names = errorsOf(imported).map(error => error.name)
      const wrong = []
      for (const [from, maker] of Object.entries(copies)) {
        for (const error of errorsOf(maker)) {
          for (const [to, judge] of Object.entries(copies)) {
            for (const name of names) {
              const expected = name === 'LockError' || name === error.name
              if (error instanceof judge[name] !== expected) wrong.push([from, error.name, to, name])
            }
          }
        }
      }
      print({ names, wrong })
    `)
    const leaves = ['LockTimeoutError', 'LockLostError', 'LockConnectionError', 'LockClosedError', 'LockArgumentError']
    expect(wrong).toEqual({ names: ['LockError', ...leaves], wrong: [] })
  })
})

test('two versions in one process exclude each other, and wait for each other', async () => {
  const vias = await withCopies(`
    const clients = Object.values(copies).map(({ LockClient }) => new LockClient(url))
    let inside = 0
    const vias = await Promise.all(clients.map(locks => locks.using(key, { fair: true }, async lease => {
      if (++inside > 1) throw new Error('two at once')
      await new Promise(resolve => setTimeout(resolve, 50))
      inside--
      return lease.via
    })))
    const late = await clients[0].using(key, () => clients[1].lock(key, { timeout: 20 }).catch(error => error))
    await Promise.all(clients.map(locks => locks.close()))
    print([vias.toSorted(), late instanceof imported.LockTimeoutError])
  `)
  expect(vias).toEqual([['handoff', 'handoff', 'handoff', 'immediate'], true])
})

test('clients of all copies share the locks of a store in memory, whichever copy made it', async () => {
  const answers = await withCopies(`
    import { memory } from 'redis-baton/memory'
    const { memory: requiredMemory } = createRequire(import.meta.url)('redis-baton/memory')
    const answers = []
    for (const make of [memory, requiredMemory]) {
      const store = make()
      const clients = Object.values(copies).map(({ LockClient }) => new LockClient(store))
      const lease = await clients[0].lock(key)
      const others = await Promise.all(clients.map(locks => locks.tryLock(key)))
      const next = clients[1].lock(key, { fair: true })
      await clients[2].forceRelease(key)
      const lost = lease.signal.reason instanceof required.LockLostError
      const { via } = await next
      for (const locks of clients) store.disconnect(locks)
      const error = await clients[3].tryLock(key).catch(error => error)
      answers.push([others, lost, via, error instanceof other.LockConnectionError])
      await Promise.all(clients.map(locks => locks.close()))
    }
    print(answers)
  `)
  const each = [[null, null, null, null], true, 'handoff', true]
  expect(answers).toEqual([each, each])
})

test('a client re-enters, whichever copy the code around it uses', async () => {
  const vias = await withCopies(`
    const nestedVia = async locks => {
      const inner = await locks.lock(key)
      await inner.release()
      return inner.via
    }
    const vias = []
    for (const { LockClient } of Object.values(copies)) {
      const locks = new LockClient(url)
      for (const { locked } of Object.values(copies)) {
        // Calls the decorator as a compiler does, for a method of a library with its own copy.
        const method = locked(locks, key)(() => nestedVia(locks), { kind: 'method', name: 'method' })
        vias.push(await locks.using(key, () => method.call({})))
      }
      vias.push(await locks.runAs('me', () => locks.using(key, () => nestedVia(locks))))
      await locks.close()
    }
    print({ vias: [...new Set(vias)], calls: vias.length })
  `)
  expect(vias).toEqual({ vias: ['reentry'], calls: 20 })
})

/**
 * Tests the package in a realm of its own, as Jest loads it: the package and ioredis have other classes `Error` and
 * `AggregateError` than Node itself. So `instanceof` is false for every error of a socket.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { runNode } from '../../kit/program.ts'
import { emptyFolder } from '../../kit/temp.ts'
import { root } from './imports.ts'

/** Loads CommonJS modules into a new realm, which has the globals of Node, but intrinsic objects of its own. */
const loader = `
  const { readFileSync } = require('node:fs')
  const { createRequire, isBuiltin } = require('node:module')
  const { dirname } = require('node:path')
  const vm = require('node:vm')
  const intrinsic = vm.runInNewContext('Object.getOwnPropertyNames(globalThis)')
  const names = Object.getOwnPropertyNames(globalThis).filter(name => !intrinsic.includes(name))
  const realm = vm.createContext(Object.fromEntries(['console', ...names].map(name => [name, globalThis[name]])))
  const modules = new Map()
  function load(file) {
    if (modules.has(file)) return modules.get(file).exports
    const module = { exports: {} }
    modules.set(file, module)
    const text = readFileSync(file, 'utf8')
    if (file.endsWith('.json')) return (module.exports = JSON.parse(text))
    const { resolve } = createRequire(file)
    const required = id => (isBuiltin(id) ? require(id) : load(resolve(id)))
    const names = ['exports', 'require', 'module', '__filename', '__dirname']
    const run = vm.compileFunction(text, names, { parsingContext: realm, filename: file })
    run(module.exports, required, module, file, dirname(file))
    return module.exports
  }
  load(process.argv[2])
`

/** What a caller sees of a server that is not there. */
const program = `
  const { LockClient } = require('redis-baton')
  const describe = error => [error instanceof Error, error.name, error.message, error.code]
  async function failure(source, options) {
    const locks = new LockClient(source, { outageTimeout: 300 })
    const error = await locks.lock('key', options).catch(error => error)
    if (!(error instanceof Error)) throw new Error('the lock was granted')
    await locks.close()
    return [describe(error), describe(error.cause)]
  }
  async function main() {
    console.log(JSON.stringify({
      refused: await failure('redis://127.0.0.1:1'),
      late: await failure('redis://127.0.0.1:1', { timeout: 100 }),
    }))
  }
  main()
`

test('the error of a socket is an Error there, and its message is told', async () => {
  const folder = await emptyFolder()
  await writeFile(join(folder, 'loader.cjs'), loader)
  // Inside the project, so that the package finds itself by its name.
  const file = fileURLToPath(new URL('.cache/realm.cjs', root))
  await writeFile(file, program)
  const { code, output, errors } = await runNode([join(folder, 'loader.cjs'), file])
  expect(code, errors).toBe(0)
  const cause = [true, 'Error', 'connect ECONNREFUSED 127.0.0.1:1', 'ECONNREFUSED']
  const { refused, late } = JSON.parse(output)
  expect(refused[1]).toEqual(cause)
  expect(refused[0][2]).toContain(cause[2])
  expect(late[1]).toEqual(cause)
  expect(late[0][2]).toContain(cause[2])
})

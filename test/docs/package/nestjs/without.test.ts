/** Nest is optional: for users who do not have Nest, the package works, and loads nothing of Nest. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { runNode } from '../../../kit/program.ts'
import { redisUrl } from '../../../kit/redis.ts'
import { importGraph, reachable, root } from '../imports.ts'
import { needed, projectWith } from '../project-with.ts'

const isNest = (name: string) => /^(@nestjs\/|reflect-metadata$|rxjs$)/.test(name)
const isOurs = (file: string) => file.startsWith('src/nestjs/') || isNest(file)

test('without Nest the lock works, and modules that need Nest say so', async () => {
  const cwd = await projectWith(needed)
  const run = (code: string) => runNode(['--input-type=module', '--eval', code, redisUrl()], { cwd })
  const lock = await run(`
    import { LockClient } from 'redis-baton'
    const locks = new LockClient(process.argv[1])
    console.log(await locks.using('nestjs-test', lease => lease.via))
    await locks.close()
  `)
  expect(lock.errors).toBe('')
  expect(lock).toMatchObject({ code: 0, output: 'immediate\n' })

  const { code, errors } = await run(`await import('redis-baton/nestjs')`)
  expect(code).not.toBe(0)
  expect(errors).toMatch(/Cannot find package '(@nestjs\/common|reflect-metadata)'/)
}, 70_000)

test('no other part of the package imports Nest, not even for a type', async () => {
  const graph = await importGraph()
  const others = [...graph].filter(([file, imported]) => !isOurs(file) && imported.some(isOurs)).map(([file]) => file)
  expect(others).toEqual([])
  expect([...reachable(graph, 'src/index.ts').keys()].filter(isOurs)).toEqual([])
})

test('exactly the packages that it imports from Nest are optional peers of the package', async () => {
  const manifest = JSON.parse(await readFile(new URL('package.json', root), 'utf8'))
  const imported = [...reachable(await importGraph(), 'src/nestjs/index.ts').keys()].filter(isNest)
  const peers = Object.keys(manifest.peerDependencies).filter(isNest)
  expect(imported.sort()).toEqual(peers.sort())
  expect(imported).toContain('@nestjs/common')
  for (const name of imported) expect(manifest.peerDependenciesMeta[name]).toEqual({ optional: true })
})

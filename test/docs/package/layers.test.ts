import { readdir, readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { importGraph, importsIn, reachable, root } from './imports.ts'

const graph = await importGraph()

/** For each part, the modules that it must not import. Indirect imports, and imports of types, are also forbidden. */
const forbidden: Record<string, string[]> = {
  'src/key/': ['src/redis/', 'src/kinds/', 'src/kind-client.ts', 'src/client.ts', 'ioredis'],
  // Decides what a client does next. Depends on none of the files that carry out its decisions.
  'src/key/key.ts': ['src/key/requests.ts', 'src/key/holds.ts', 'src/key/limits.ts', 'src/settings.ts'],
  'src/redis/': ['src/key/', 'src/kinds/', 'src/client.ts'],
  'src/kinds/': ['src/redis/', 'src/key/', 'src/client.ts', 'ioredis'],
  'src/compose/quorum/': ['src/key/', 'src/session.ts', 'src/client.ts'],
  'src/memory/': ['src/key/', 'src/session.ts', 'src/client.ts', 'src/compose/'],
  'src/backend.ts': ['src/compose/', 'src/key/', 'src/client.ts'],
  'src/session.ts': ['src/kinds/', 'src/client.ts'],
  'src/kind.ts': ['src/redis/', 'src/kinds/', 'src/key/', 'src/client.ts', 'ioredis'],
  'src/index.ts': ['src/opentelemetry/', '@opentelemetry/api', 'src/nestjs/', '@nestjs/common', 'reflect-metadata'],
  'src/': ['cli/', 'benchmarks/', 'local-redis/', 'test/'],
  'local-redis/': ['src/', 'cli/', 'benchmarks/', 'test/'],
  'benchmarks/': ['cli/', 'test/'],
  'cli/': ['test/'],
}

describe('imports go only downwards, types included', () => {
  test.each(Object.entries(forbidden))('%s', async (part, others) => {
    const ways = reachable(graph, part)
    const wrong = [...ways].filter(([file]) => others.some(other => file.startsWith(other))).map(([, way]) => way)
    expect(ways.size).toBeGreaterThan(0)
    expect(wrong).toEqual([])
  })

  test('the layout in CONTRIBUTING.md has a row for each file and folder at the top of src/', async () => {
    const [, layout] = (await readFile(new URL('CONTRIBUTING.md', root), 'utf8')).split('## Layout') as [string, string]
    const there = await readdir(new URL('src/', root), { withFileTypes: true })
    const code = there.filter(({ name }) => !name.endsWith('.md'))
    const wanted = code.map(entry => `\`src/${entry.name}${entry.isDirectory() ? '/' : ''}\``)
    expect(wanted.filter(name => !layout.includes(name))).toEqual([])
  })

  test('no file imports itself indirectly, not even for a type', async () => {
    const cycles = [...graph].flatMap(([file, imported]) =>
      imported.map(other => reachable(graph, other).get(file)).filter(way => way !== undefined),
    )
    expect(cycles).toEqual([])
  })

  test('every form of import is recognised, and every imported file exists', async () => {
    const source = [
      `import value, {\n  type Type,\n} from './a.ts'`,
      `import type { Type } from './b.ts'`,
      `export type { Type } from './c.ts'`,
      `export * from './d.ts'`,
      `import './e.ts'`,
      `const late = await import('./f.ts')`,
      `let type: import('./g.ts').Type`,
      `export const text = 'taken from "./no.ts"'`,
    ]
    expect(importsIn(source.join('\n'))).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g'].map(name => `./${name}.ts`))

    expect([...graph.values()].flat().filter(name => name.includes('.ts') && !graph.has(name))).toEqual([])
  })
})

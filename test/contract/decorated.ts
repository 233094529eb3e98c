/**
 * Classes with decorated methods, as a user writes them. Vitest's own transformation leaves standard decorators
 * unchanged, and Node does not support them yet. So esbuild translates the fixture, as a compiler does for users. The
 * fixture imports only types, so it can be loaded from its text and receive the code under test as arguments.
 */
import { readFile } from 'node:fs/promises'
import { transform } from 'esbuild'
import type { Decorated } from './decorated.fixture.ts'

export async function decorated(): Promise<Decorated> {
  const source = await readFile(new URL('decorated.fixture.ts', import.meta.url), 'utf8')
  const { code } = await transform(source, { loader: 'ts', format: 'esm', target: 'es2022' })
  return import(/* @vite-ignore */ `data:text/javascript;base64,${Buffer.from(code).toString('base64')}`)
}

/**
 * Loads the fixture's classes with decorated methods, as a user would write them. Node does not support standard
 * decorators yet, and Vitest leaves them unchanged. So esbuild translates the fixture, as a compiler does for users.
 * The fixture imports only types, so its text can be loaded as a module, and it receives the code under test as
 * arguments.
 */
import { readFile } from 'node:fs/promises'
import { transform } from 'esbuild'
import type { Decorated } from './decorated.fixture.ts'

export async function decorated(): Promise<Decorated> {
  const source = await readFile(new URL('decorated.fixture.ts', import.meta.url), 'utf8')
  const { code } = await transform(source, { loader: 'ts', format: 'esm', target: 'es2022' })
  return import(/* @vite-ignore */ `data:text/javascript;base64,${Buffer.from(code).toString('base64')}`)
}

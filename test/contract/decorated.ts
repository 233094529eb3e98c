/**
 * Classes whose methods are decorated, as a user writes them. Vitest's own transformation leaves standard decorators as
 * they are, and Node does not know them yet: so this file is translated by esbuild, as users' files are by their compiler.
 * It imports types only, so that it can be loaded from its text, with the parts of it that are under test handed in.
 */
import { readFile } from 'node:fs/promises'
import { transform } from 'esbuild'
import type { Decorated } from './decorated.fixture.ts'

export async function decorated(): Promise<Decorated> {
  const source = await readFile(new URL('decorated.fixture.ts', import.meta.url), 'utf8')
  const { code } = await transform(source, { loader: 'ts', format: 'esm', target: 'es2022' })
  return import(/* @vite-ignore */ `data:text/javascript;base64,${Buffer.from(code).toString('base64')}`)
}

/** Reads the scripts from a module that scripts/build-lua.ts makes. */
import { transform } from 'esbuild'
import { modulesOf } from '../../scripts/lua/module.ts'
import type { scripts } from '../../src/kinds/mutex/scripts.generated.ts'

export type Script = Pick<(typeof scripts)[keyof typeof scripts], 'lua' | 'keys' | 'args'>

/** Returns the scripts of a built module, by name. */
export async function scriptsOf(module: string): Promise<Record<string, Script>> {
  const { code } = await transform(module, { loader: 'ts' })
  const loaded: { scripts: Record<string, Script> } = await import(`data:text/javascript,${encodeURIComponent(code)}`)
  return loaded.scripts
}

/** Returns the scripts of a kind, with the full names of their locals. */
export function namedScriptsOf(folder: URL, kind = 'mutex'): Promise<Record<string, Script>> {
  return scriptsOf(modulesOf(folder, () => new Map()).get(kind) as string)
}

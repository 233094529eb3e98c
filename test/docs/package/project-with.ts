import { cp, mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { emptyFolder } from '../../kit/temp.ts'
import { root } from './imports.ts'

const at = (path: string) => fileURLToPath(new URL(path, root))

/** The packages without which redis-baton cannot work. */
export const needed = ['ioredis', 'eventemitter3', 'p-timeout']

/** Makes a project that has the built package and, of its dependencies, only `packages`. Returns the folder. */
export async function projectWith(packages: string[]): Promise<string> {
  const folder = await emptyFolder()
  const installed = join(folder, 'node_modules', 'redis-baton')
  await mkdir(installed, { recursive: true })
  await cp(at('package.json'), join(installed, 'package.json'))
  await cp(at('dist'), join(installed, 'dist'), { recursive: true })
  for (const name of packages) {
    const link = join(folder, 'node_modules', name)
    await mkdir(join(link, '..'), { recursive: true })
    await symlink(at(`node_modules/${name}`), link)
  }
  return folder
}

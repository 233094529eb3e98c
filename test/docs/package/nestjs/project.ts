/**
 * The project of a Nest user. It has one version of Nest from the registry, the built package, the application in app/,
 * and the code of docs/nestjs.md. The user's compiler compiles the project. The installation is kept in the cache.
 */
import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { readPage } from '../../page.ts'
import { root } from '../imports.ts'

const at = (path: string) => fileURLToPath(new URL(path, root))

export interface Nest {
  readonly major: string
  /** The kind of modules that the user's project has: Nest before 12 is CommonJS. */
  readonly type: 'commonjs' | 'module'
  readonly dependencies: Readonly<Record<string, string>>
}

const nest = (major: string, type: Nest['type'], schedule: string): Nest => {
  const parts = ['common', 'core', 'platform-express', 'platform-fastify'].map(part => [`@nestjs/${part}`, `^${major}`])
  const others = { '@nestjs/schedule': schedule, 'reflect-metadata': '^0.2.2', rxjs: '^7.8.2' }
  return { major, type, dependencies: { ...Object.fromEntries(parts), ...others } }
}

/** The last argument is the version of @nestjs/schedule, which has version numbers of its own. */
export const versions = [nest('10', 'commonjs', '^4'), nest('11', 'commonjs', '^6'), nest('12', 'module', '^12')]

/**
 * The dependencies of the package, and the types that users of TypeScript on Node have. The user's project gets links
 * to the copies in this repository.
 */
const linked = ['ioredis', 'eventemitter3', 'p-timeout', '@types/node']

/** Compiles the application and returns its folder. Rejects with the compiler's output. */
export async function projectOf({ major, type, dependencies }: Nest): Promise<string> {
  const folder = at(`.cache/nestjs/${major}`)
  await mkdir(folder, { recursive: true })
  await install(folder, JSON.stringify({ private: true, type, dependencies }))
  const modules = join(folder, 'node_modules')
  await rm(join(modules, 'redis-baton'), { recursive: true, force: true })
  await mkdir(join(modules, '@types'), { recursive: true })
  for (const part of ['package.json', 'dist']) {
    await cp(at(part), join(modules, 'redis-baton', part), { recursive: true })
  }
  for (const name of linked) {
    await rm(join(modules, name), { recursive: true, force: true })
    await symlink(at(`node_modules/${name}`), join(modules, name))
  }
  const out = join(folder, 'app')
  await rm(out, { recursive: true, force: true })
  await rm(join(folder, 'src'), { recursive: true, force: true })
  await cp(fileURLToPath(new URL('app', import.meta.url)), join(folder, 'src'), { recursive: true })
  for (const [i, { text }] of readPage('docs/nestjs.md').blocks.entries()) {
    await writeFile(join(folder, 'src', `docs-${i}.ts`), text)
  }
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2022',
    lib: ['es2023', 'esnext.disposable'],
    types: ['node'],
    strict: true,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    // The compiler also checks the package's declarations, because they must fit the types of each version of Nest.
    skipLibCheck: false,
    rootDir: 'src',
    outDir: out,
  }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['src'] }))
  await promisify(execFile)(process.execPath, [at('node_modules/typescript-5/bin/tsc'), '-p', folder]).catch(error => {
    throw new Error(`does not compile with Nest ${major}:\n${error.stdout}`)
  })
  return out
}

/**
 * Installs the packages that `manifest`, the text of package.json, names. Does nothing if they are installed already.
 * If npm was interrupted, installed.json is missing, and the installation is repeated.
 */
async function install(folder: string, manifest: string): Promise<void> {
  const [wanted, done] = [join(folder, 'package.json'), join(folder, 'installed.json')]
  if ((await readFile(done, 'utf8').catch(() => '')) === manifest) return
  await writeFile(wanted, manifest)
  const args = ['install', '--no-audit', '--no-fund', '--prefer-offline', '--ignore-scripts']
  await promisify(execFile)('npm', args, { cwd: folder, timeout: 120_000, maxBuffer: 2 ** 26 })
  await writeFile(`${done}.new`, manifest)
  await rename(`${done}.new`, done)
}

import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packageRoot } from './package-root.ts'

const root = fileURLToPath(packageRoot)

/**
 * Returns the cache folder. If BATON_CACHE is set, it names the folder. In a checkout, the folder is inside the
 * checkout, so that it is deleted with the checkout. An installed package should not write into node_modules, so it
 * uses the user's cache folder.
 */
export async function cacheFolder({ BATON_CACHE, XDG_CACHE_HOME }: NodeJS.ProcessEnv): Promise<string> {
  if (BATON_CACHE) return resolve(BATON_CACHE)
  if ((await isCheckout()) && (await allows(root, constants.W_OK))) return join(root, '.cache')
  return join(XDG_CACHE_HOME || join(homedir(), '.cache'), 'redis-baton')
}

/** Returns whether this is a checkout, which contains the sources. The published package does not. */
export async function isCheckout(): Promise<boolean> {
  return (await allows(join(root, '.git'))) || (await allows(join(root, 'src')))
}

function allows(path: string, mode?: number): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  )
}

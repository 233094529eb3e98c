/**
 * The rivals' packages are no dependencies of this one: whoever wants to measure one installs it. So nothing here is
 * imported before it is needed, and what is missing is told by name.
 */
import { createRequire } from 'node:module'

const { resolve } = createRequire(import.meta.url)

/** What to say when one of the packages is not there; undefined when all are. Only looks, runs nothing of them. */
export async function notInstalled(...packages: string[]): Promise<string | undefined> {
  const absent = packages.filter(name => !isThere(name))
  return absent.length === 0 ? undefined : `not installed: npm install ${absent.join(' ')}`
}

function isThere(name: string): boolean {
  try {
    resolve(name)
    return true
  } catch {
    return false
  }
}

/** Imports a package whose declarations are missing or cannot be found, as what the caller knows of it. */
export async function load<T>(name: string): Promise<T> {
  return (await import(name)) as T
}

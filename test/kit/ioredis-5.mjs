// If Node is started with this file as `--import`, each import of ioredis gives ioredis 5, even in child processes.
import { createRequire, Module, register } from 'node:module'
import { pathToFileURL } from 'node:url'

const require = createRequire(import.meta.url)
const [newer, older] = ['ioredis', 'ioredis-5'].map(name => require.resolve(name))

const resolveFilename = Module._resolveFilename
Module._resolveFilename = function (...asked) {
  const found = resolveFilename.apply(this, asked)
  return found === newer ? older : found
}

const [from, to] = [newer, older].map(path => pathToFileURL(path).href)
const hook = `export async function resolve(...asked) {
  const found = await asked[2](asked[0], asked[1])
  return found.url === ${JSON.stringify(from)} ? { ...found, url: ${JSON.stringify(to)} } : found
}`
register(`data:text/javascript,${encodeURIComponent(hook)}`)

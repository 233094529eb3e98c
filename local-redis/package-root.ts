import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const manifest = createRequire(import.meta.url).resolve('redis-baton/package.json')

/** The folder of package.json. A source and what is compiled from it are not at the same depth below it. */
export const packageRoot = new URL('./', pathToFileURL(manifest))

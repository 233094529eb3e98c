/**
 * The address of one server:
 *
 *      redis://[user:password@]host[:port][/database][?options of ioredis]
 *      unix://[user:password@]/path[?db=database]
 *
 * `rediss` selects TLS, and `unix` a Unix socket. ioredis reads the first form differently: it takes `/1x` for database
 * 1, and ends the process with an unhandled rejection if the database is no number.
 */
import type { RedisOptions } from 'ioredis'

/**
 * Returns the URL, and the options of ioredis for it; undefined if the text is not the address of a server. For a Unix
 * socket, the URL has a host that means nothing.
 */
export function serverUrl(text: string): { url: URL; options: RedisOptions } | undefined {
  // A URL with a user must have a host.
  const address = text.replace(/^unix:\/\/([^/?#]*@)?(?=\/)/, 'redis://$1socket')
  if (!/^rediss?:\/\//.test(address) || !URL.canParse(address)) return undefined
  const url = new URL(address)
  const { hash, search, pathname, searchParams } = url
  // If a password contains an unescaped / # or ?, the address is parsed wrongly: the user name becomes the host, and
  // the beginning of the password becomes the port, which error messages show. So such an address is refused.
  if (hash !== '' || search.includes('@')) return undefined
  const ofSocket = address !== text
  if (ofSocket ? pathname === '/' : !/^(\/\d*)?$/.test(pathname)) return undefined
  if (['db', 'port'].some(name => !/^\d+$/.test(searchParams.get(name) ?? '0'))) return undefined
  try {
    return { url, options: ofSocket ? { ...common(url), path: decodeURIComponent(pathname) } : ofHost(url) }
  } catch {
    // A % is not followed by two digits.
    return undefined
  }
}

function ofHost(url: URL): RedisOptions {
  const { protocol, hostname, port, pathname } = url
  return {
    ...(protocol === 'rediss:' && { tls: {} }),
    ...common(url),
    ...(hostname && { host: hostname.replace(/^\[|\]$/g, '') }),
    ...(port && { port: Number(port) }),
    ...(pathname.length > 1 && { db: Number(pathname.slice(1)) }),
  }
}

function common({ username, password, searchParams }: URL): RedisOptions {
  const { family, ...others } = Object.fromEntries(searchParams)
  return {
    ...others,
    ...(family && { family: Number(family) }),
    ...((username || password) && {
      username: decodeURIComponent(username),
      password: decodeURIComponent(password),
    }),
  }
}

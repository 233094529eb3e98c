/** A Redis to use. Either this package has started it, or the user has named it. */
export interface LocalRedis {
  readonly url: string
  /** A description for people. It never contains a password. */
  readonly description: string
  /** Stops a server that this package has started. Does nothing to a server that REDIS_URL names. */
  stop(): Promise<void>
}

/**
 * Returns the server that REDIS_URL names, or undefined if REDIS_URL is not set. This package never starts, stops or
 * empties that server.
 */
export function namedRedis(value: string | undefined): LocalRedis | undefined {
  if (!value) return undefined
  return {
    url: value,
    description: `the server that REDIS_URL names, ${withoutSecrets(value)}`,
    stop: async () => {},
  }
}

/** Parses a server's address: `redis:` or `rediss:`, a host, and optionally a database number and a query. */
function addressOf(value: string): URL | undefined {
  const url = URL.canParse(value) ? new URL(value) : undefined
  if (!url?.hostname || !['redis:', 'rediss:'].includes(url.protocol)) return undefined
  // If a password contains an unescaped / # or ?, the address is parsed wrongly: the user name becomes the host, and
  // the beginning of the password becomes the port. A description of the server would then show this part of the
  // password. So such an address is refused.
  if (!/^(\/\d*)?$/.test(url.pathname) || url.hash !== '' || url.search.includes('@')) return undefined
  return decodes(url.username) && decodes(url.password) ? url : undefined
}

function decodes(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/**
 * Reduces the address to host, port and database. The user part is dropped because some providers put the secret there,
 * and the query because some clients read a password from it.
 */
function withoutSecrets(value: string): string {
  const url = addressOf(value)
  if (!url) {
    // The value is not quoted: a mistyped address still contains its password.
    throw new Error('REDIS_URL is set, but is not an address of the form redis://host:port or rediss://host:port')
  }
  return `${url.protocol}//${url.host}${url.pathname === '/' ? '' : url.pathname}`
}

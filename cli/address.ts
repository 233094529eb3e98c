/**
 * How the user names Redis: one server, a cluster (by some of its nodes), or a master (by the sentinels that watch it).
 *
 *      redis://[user:password@]host[:port][/database][?options of ioredis]
 *      unix://[user:password@]/path of a Unix socket[?db=database]
 *      redis+cluster://[user:password@]host[:port][,host[:port]…]
 *      redis+sentinel://[user:password@]host[:port][,host[:port]…]/<master name>[/database][?sentinel_username=…&sentinel_password=…]
 *
 * `rediss` selects TLS. With sentinels, TLS applies to the sentinels and to the master. `user:password` is sent only to
 * the servers that keep the locks, never to sentinels, for two reasons. Other programs that take such an address do so,
 * too. And a sentinel should not receive the master's password: it needs at most the user and password in `sentinel_…`.
 */
import { isIPv6 } from 'node:net'
import { serverUrl } from '../src/redis/url.ts'
import { exitCodes, Failure } from './failure.ts'

export interface Host {
  readonly host: string
  readonly port: number
}

export interface Credentials {
  readonly username?: string
  readonly password?: string
}

interface Common {
  readonly tls: boolean
  /** A short form of the address for messages, without secrets. */
  readonly place: string
  /** The whole address, without secrets. */
  readonly shown: string
  readonly hasSecrets: boolean
}

export interface ServerAddress extends Common {
  readonly kind: 'server'
  readonly url: string
}

export interface ClusterAddress extends Common {
  readonly kind: 'cluster'
  readonly hosts: readonly Host[]
  readonly credentials: Credentials
}

export interface SentinelAddress extends Common {
  readonly kind: 'sentinel'
  readonly hosts: readonly Host[]
  /** User and password that are sent to the master. */
  readonly credentials: Credentials
  readonly forSentinels: Credentials
  /** The master's name. */
  readonly name: string
  readonly database: number
}

export type Address = ServerAddress | ClusterAddress | SentinelAddress

/** The numbers of servers that a quorum may have. */
const quorumSizes: readonly number[] = [3, 5, 7]
const usualPort = { cluster: 6_379, sentinel: 26_379 } as const
/** The names that a sentinel accepts for a master. */
const masterName = /^[\w.-]+$/
const hostName = /^[\p{L}\p{N}_][\p{L}\p{N}._-]*$/u

const forms = [
  'redis://[user:password@]host[:port][/database]',
  'unix:///path of a Unix socket[?db=database]',
  'redis+cluster://[user:password@]host[:port][,host[:port]]',
  'redis+sentinel://[user:password@]host[:port][,host[:port]]/<master name>[/database]',
] as const

export const addressHelp = `
The address of Redis is the value of --url, or else of $REDIS_URL. Other users of the machine can see the arguments of a program,
but not its environment. So if the address contains a password, put it into $REDIS_URL.
  redis://user:password@host:port/database                      one server
  unix://user:password@/path?db=database                        one server, by its Unix socket
  redis+cluster://user:password@host:port,host:port             a cluster; the hosts are some of its nodes
  redis+sentinel://user:password@host:port,host:port/name/0     database 0 of the master "name"; the hosts are its sentinels
For a quorum, give --url three, five or seven times, each time with another independent server.
For TLS, write rediss instead of redis. To trust further certificates, set NODE_EXTRA_CA_CERTS to a file that contains them.
If the sentinels need a password of their own, append it to the address: ?sentinel_username=user&sentinel_password=password
In a password, percent-encode / ? # @ % : , & (for example, / as %2F). Only the hosts and the name of the master are required.`

/** Returns undefined if the text is not an address. */
export function parseAddress(text: string): Address | undefined {
  const parts = /^(rediss?)\+(cluster|sentinel):\/\/(?:([^@/?#]*)@)?([^@/?#]+)([^@?#]*)(?:\?([^@#]*))?$/.exec(text)
  if (!parts) return server(text)
  const [, protocol, kind, user = '', list, path, query = ''] = parts as unknown as [string, string, Kind, ...string[]]
  try {
    const hosts = list!.split(',').map(one => hostOf(one, usualPort[kind]))
    const credentials = credentialsOf(...split(user))
    const tls = protocol === 'rediss'
    const bare = `${protocol}+${kind}://${list}`
    const hasSecrets = user !== '' || query !== ''
    if (kind === 'cluster') {
      // A cluster has only database 0.
      if (!/^(\/0?)?$/.test(path!) || query !== '') return undefined
      return { kind, tls, hosts, credentials, place: bare, shown: bare, hasSecrets }
    }
    const [, name = '', database = '', ...rest] = path!.split('/')
    if (!masterName.test(name) || !/^\d{0,9}$/.test(database) || rest.length > 0) return undefined
    const place = `${bare}/${name}`
    const shown = database === '' ? place : `${place}/${database}`
    const forSentinels = sentinelCredentials(query)
    return { kind, tls, hosts, credentials, forSentinels, name, database: Number(database), place, shown, hasSecrets }
  } catch {
    return undefined
  }
}

type Kind = keyof typeof usualPort

/**
 * Parses an address that was found in `source`, such as `--url`. Throws Failure if the text is not an address. The
 * message does not quote the text, because a mistyped address still contains its password.
 */
export function checkedAddress(text: string, source: string): Address {
  const address = parseAddress(text)
  if (address) return address
  const [server, socket, cluster, sentinel] = forms
  throw new Failure(
    `${source} is not an address of Redis; expected ${server}, ${socket}, ${cluster} or ${sentinel}, with rediss for TLS; in a password, percent-encode / ? # @ and % (for example, / as %2F)`,
    exitCodes.usage,
  )
}

/** Returns the servers that several `--url` options name together. Throws Failure if they cannot form a quorum. */
export function checkedQuorum(urls: readonly string[]): readonly ServerAddress[] {
  const refuse = (why: string): never => {
    throw new Failure(
      `${why}; give it once for one Redis, or 3, 5 or 7 times for the servers of a quorum`,
      exitCodes.usage,
    )
  }
  if (!quorumSizes.includes(urls.length)) refuse(`--url is given ${urls.length} times`)
  const servers = urls.map(url => {
    const address = checkedAddress(url, '--url')
    if (address.kind === 'server') return address
    return refuse(`--url is given ${urls.length} times, and one of them names ${whatIs(address)}, not a single server`)
  })
  // A server that is named twice would have two votes, and two votes of three are a majority.
  const twice = servers.find(({ place }, i) => servers.slice(0, i).some(other => other.place === place))
  if (twice) refuse(`--url names the server ${twice.place} twice`)
  return servers
}

/**
 * Returns the server for a command that works with one server: the one that `--url` names, or `$REDIS_URL` if there is
 * no `--url`. Returns undefined if neither is given. `command` is the command as the user types it.
 */
export function namedServer(urls: readonly string[] | undefined, command: string): ServerAddress | undefined {
  const text = urls ? urls[0] : process.env['REDIS_URL']
  if (!urls && !text) return undefined
  const source = urls ? '--url' : '$REDIS_URL'
  const address = checkedAddress(text ?? '', source)
  const several = urls !== undefined && urls.length > 1
  const isSocket = address.shown.startsWith('unix:')
  if (address.kind === 'server' && !several && !isSocket) return address
  const what = several ? `${urls.length} servers` : isSocket ? 'a Unix socket' : whatIs(address)
  const otherwise = urls ? 'leave --url out' : 'unset REDIS_URL'
  throw new Failure(
    `${command} works with one server, but ${source} names ${what}; give --url redis://host:port, or ${otherwise} so that baton starts a server`,
    exitCodes.usage,
  )
}

function whatIs({ kind }: Address): string {
  if (kind === 'server') return 'a server'
  return kind === 'cluster' ? 'a cluster' : 'sentinels'
}

function server(text: string): ServerAddress | undefined {
  const found = serverUrl(text)
  if (!found?.url.hostname) return undefined
  const { protocol, host, hostname, port, pathname, username, password, search } = found.url
  const { path } = found.options
  return {
    kind: 'server',
    url: text,
    tls: protocol === 'rediss:',
    place: path ?? `${hostname}:${port || 6379}`,
    shown: path ? `unix://${pathname}` : `${protocol}//${host}${pathname === '/' ? '' : pathname}`,
    hasSecrets: username !== '' || password !== '' || search !== '',
  }
}

/** Parses a host with an optional port. Throws if the text has another form. `usual` is the default port. */
function hostOf(text: string, usual: number): Host {
  const [, six, name = '', port] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? []
  const number = port === undefined ? usual : Number(port)
  if (!(six === undefined ? hostName.test(name) : isIPv6(six)) || number < 1 || number > 65_535)
    throw new Error('no host')
  return { host: six ?? name, port: number }
}

/** Splits at the first colon into user and password. */
function split(user: string): [string, string] {
  const colon = user.indexOf(':')
  return colon === -1 ? [user, ''] : [user.slice(0, colon), user.slice(colon + 1)]
}

function credentialsOf(username: string, password: string): Credentials {
  return {
    ...(username !== '' && { username: decodeURIComponent(username) }),
    ...(password !== '' && { password: decodeURIComponent(password) }),
  }
}

function sentinelCredentials(query: string): Credentials {
  const given: Record<string, string> = {}
  for (const part of query === '' ? [] : query.split('&')) {
    const [, name, value] = /^(sentinel_username|sentinel_password)=(.*)$/.exec(part) ?? []
    if (name === undefined || given[name] !== undefined) throw new Error('no such parameter')
    given[name] = value!
  }
  return credentialsOf(given['sentinel_username'] ?? '', given['sentinel_password'] ?? '')
}

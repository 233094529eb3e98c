/**
 * How Redis is named: one server, a cluster by some of its nodes, or a master by the sentinels that watch it.
 *
 *      redis://[user:password@]host[:port][/database][?options of ioredis]
 *      redis+cluster://[user:password@]host[:port][,host[:port]…]
 *      redis+sentinel://[user:password@]host[:port][,host[:port]…]/<master name>[/database][?sentinel_username=…&sentinel_password=…]
 *
 * `rediss` for TLS: with sentinels, both to them and to the master. `user:password` is for the servers that have the locks,
 * never for sentinels: other programs that take this form read it so, and a password is not offered to who has not asked for it.
 */
import { isIPv6 } from 'node:net'
import { addressOf } from '../local-redis/redis-url.ts'
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
  /** Where it leads, in few words and without secrets. */
  readonly place: string
  /** The same address without secrets. */
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
  /** For the master. */
  readonly credentials: Credentials
  readonly forSentinels: Credentials
  /** Of the master. */
  readonly name: string
  readonly database: number
}

export type Address = ServerAddress | ClusterAddress | SentinelAddress

/** How many servers a quorum has. */
const quorumSizes: readonly number[] = [3, 5, 7]
const usualPort = { cluster: 6_379, sentinel: 26_379 } as const
/** What a sentinel takes for the name of a master. */
const masterName = /^[\w.-]+$/
const hostName = /^[\p{L}\p{N}_][\p{L}\p{N}._-]*$/u

const forms = [
  'redis://[user:password@]host[:port][/database]',
  'redis+cluster://[user:password@]host[:port][,host[:port]]',
  'redis+sentinel://[user:password@]host[:port][,host[:port]]/<master name>[/database]',
] as const

export const addressHelp = `
The address of Redis is --url, or else $REDIS_URL. Other users of the machine can see the arguments of a program, but not its
environment, so put a password in $REDIS_URL.
  redis://user:password@host:port/database                      one server
  redis+cluster://user:password@host:port,host:port             a cluster, by some of its nodes
  redis+sentinel://user:password@host:port,host:port/name/0     the master called "name", by its sentinels, and the database
For a quorum, give --url three, five or seven times: one independent server each.
For TLS, write rediss instead of redis; NODE_EXTRA_CA_CERTS can name a file with the certificates to trust.
If the sentinels need a password of their own, append it: ?sentinel_username=user&sentinel_password=password
In a password, write / ? # @ % : , & as %2F and so on. Everything but the hosts and the name of the master is optional.`

/** Undefined: it is none. */
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
      // A cluster has no other database.
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

/** `source`: where it was found, such as `--url`. Throws Failure, which quotes nothing: a mistyped address still has its password. */
export function checkedAddress(text: string, source: string): Address {
  const address = parseAddress(text)
  if (address) return address
  const [server, cluster, sentinel] = forms
  throw new Failure(
    `${source} is not an address of Redis; expected ${server}, ${cluster} or ${sentinel}, with rediss for TLS; write / ? # @ and % in a password as %2F and so on`,
    exitCodes.usage,
  )
}

/** The servers that `--url` names together. Throws Failure for what is no quorum. */
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
  // One server that counts for two would be a majority of three.
  const twice = servers.find(({ place }, i) => servers.slice(0, i).some(other => other.place === place))
  if (twice) refuse(`--url names the server ${twice.place} twice`)
  return servers
}

/** For what works with one server: that of `--url`, else of `$REDIS_URL`, else undefined. `command`: as its user calls it. */
export function namedServer(urls: readonly string[] | undefined, command: string): ServerAddress | undefined {
  const text = urls ? urls[0] : process.env['REDIS_URL']
  if (!urls && !text) return undefined
  const source = urls ? '--url' : '$REDIS_URL'
  const address = checkedAddress(text ?? '', source)
  const several = urls !== undefined && urls.length > 1
  if (address.kind === 'server' && !several) return address
  const what = several ? `${urls.length} servers` : whatIs(address)
  const otherwise = urls ? 'leave --url out' : 'unset REDIS_URL'
  throw new Failure(
    `${command} works with one server, but ${source} names ${what}; give --url redis://host:port, or ${otherwise} to have a server started`,
    exitCodes.usage,
  )
}

function whatIs({ kind }: Address): string {
  if (kind === 'server') return 'a server'
  return kind === 'cluster' ? 'a cluster' : 'sentinels'
}

function server(text: string): ServerAddress | undefined {
  const url = addressOf(text)
  if (!url) return undefined
  const { protocol, host, hostname, port, pathname, username, password, search } = url
  return {
    kind: 'server',
    url: text,
    tls: protocol === 'rediss:',
    place: `${hostname}:${port || 6379}`,
    shown: `${protocol}//${host}${pathname === '/' ? '' : pathname}`,
    hasSecrets: username !== '' || password !== '' || search !== '',
  }
}

/** Throws where it is none, as the functions below do. */
function hostOf(text: string, usual: number): Host {
  const [, six, name = '', port] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? []
  const number = port === undefined ? usual : Number(port)
  if (!(six === undefined ? hostName.test(name) : isIPv6(six)) || number < 1 || number > 65_535)
    throw new Error('no host')
  return { host: six ?? name, port: number }
}

/** At the first colon. */
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

/** What the errors of a connection mean: a definite "no", "not now", or a failed connection. */
import type { ClusterOptions, RedisOptions } from 'ioredis'
import { isError, LockConnectionError } from '../errors.ts'

/**
 * What a refusal of the server means for the request.
 *
 * - `not now`: the same request may succeed a moment later, or on another connection.
 * - `moved`: the key is on another node of a cluster. A cluster's connection follows this answer.
 * - `split`: the keys are in several slots of a cluster.
 * - `demoted`: the server is no longer the master. A new connection to its address may lead to the new master.
 * - `uninvited`: the server has not received the right password.
 * - `final`: the same request will be refused again.
 */
export type Meaning = 'not now' | 'moved' | 'split' | 'demoted' | 'uninvited' | 'final'

const REDIRECTED = 'Too many Cluster redirections'

/**
 * The meanings of refusals, by their first word, or by a text that they contain. Other refusals are final.
 * docs/servers.md explains all refusals. "non local key" is the error of a script that needs a key while the key's slot
 * moves to another node (lua/README.md). ioredis reports "Too many Cluster redirections" when the nodes have
 * answered TRYAGAIN, ASK and MOVED for some time. UNBLOCKED is the answer to a WAIT during which the master became a replica.
 */
export const meanings: Readonly<Record<string, Meaning>> = {
  LOADING: 'not now',
  BUSY: 'not now',
  TRYAGAIN: 'not now',
  CLUSTERDOWN: 'not now',
  MASTERDOWN: 'not now',
  UNBLOCKED: 'not now',
  'ERR max number of clients': 'not now',
  'ERR max concurrent connections': 'not now',
  'non local key': 'not now',
  [REDIRECTED]: 'not now',
  MOVED: 'moved',
  ASK: 'moved',
  CROSSSLOT: 'split',
  READONLY: 'demoted',
  'cannot be used with replica': 'demoted',
  NOAUTH: 'uninvited',
  WRONGPASS: 'uninvited',
  'ERR invalid password': 'uninvited',
}

/** Before version 7, Redis embeds the error of a command in the error of the script. */
const firstWord = /^(?:ERR Error running script.* -)?([A-Z]+)\b/

/** The error of a server that does not store the locks. Such a server will refuse every request. */
export class WrongServer extends LockConnectionError {}

/** Returns what the error reply means. */
export function meaningOf({ message }: Error): Meaning {
  const word = firstWord.exec(message)?.[1]
  const key = Object.keys(meanings).find(text => text === word || (text.includes(' ') && message.includes(text)))
  return key === undefined ? 'final' : (meanings[key] as Meaning)
}

/** Returns whether the error is the server's reply, not a failure of the connection. */
export function isReply(error: unknown): error is Error {
  return isError(error) && (error.name === 'ReplyError' || error.message.startsWith(REDIRECTED))
}

/** Returns whether the server refuses every command because it has not received the right password. */
export function isUninvited(error: unknown): error is Error {
  return isReply(error) && meaningOf(error) === 'uninvited'
}

/** Returns whether the error means "not now": the same request may succeed later. */
export function isPassing(error: Error): boolean {
  return ['not now', 'moved'].includes(meaningOf(error))
}

/** Returns whether the error means that the server was the master and is a replica now. */
export function isDemoted(error: Error): boolean {
  return isReply(error) && meaningOf(error) === 'demoted'
}

/** Returns whether the error shows that the server is a node of a cluster. */
export function isOfCluster(error: Error): boolean {
  return isReply(error) && ['moved', 'split'].includes(meaningOf(error))
}

/** Returns whether the next attempt to connect would end with the same error (password, rights, wrong server). */
export function isFinal(error: unknown): boolean {
  return error instanceof WrongServer || (isReply(error) && !isPassing(error) && !isDemoted(error))
}

/** How a connection fails if only the client uses TLS, and how it fails if only the server does. */
const onlyClient =
  /before secure TLS connection|wrong version number|packet length too long|handshake of the connection/
const onlyServer = /ECONNRESET|EPIPE|closed\b|RESP type|Protocol error/

/**
 * If only one side seems to use TLS, adds a question to the message of the error, and returns the error. Call this only
 * if the server has never answered.
 */
export function askingAboutTls(error: Error, options: RedisOptions | ClusterOptions): Error {
  const { tls, path }: RedisOptions = 'redisOptions' in options ? (options.redisOptions ?? {}) : options
  const sign = tls ? onlyClient : onlyServer
  if (path || error.name === 'ReplyError' || !sign.test(error.message) || error.message.endsWith(' port?)'))
    return error
  error.message += ` (this client ${tls ? 'uses' : 'does not use'} TLS; is this the server's TLS port?)`
  return error
}

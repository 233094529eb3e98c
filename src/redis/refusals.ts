/** What the errors of a connection mean: a definite "no", "not now", or nothing but that the connection has failed. */
import { LockConnectionError } from '../errors.ts'

/**
 * Server errors that pass: the same request may succeed a moment later, or on another connection. The last is that of a script which
 * needs a key that is on another node, while its slot moves (lua/shared/all.lua).
 */
const passing = /^(LOADING|BUSY|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|MOVED|ASK)\b|\bnon local key\b/
/** So says a server that is no master any more; behind sentinels, the next connection leads to the one that is. */
const demoted = /\bREADONLY\b|\bcannot be used with replica\b/
/** So says nobody but a node of a cluster: of what another one has, and of locks that may be on several. */
const elsewhere = /^(MOVED|ASK|CROSSSLOT)\b/

/** So says a server that has not been given the right password. */
const uninvited = /^(NOAUTH|WRONGPASS|ERR invalid password)\b/

/** Why what answers is not the Redis that the locks are in, whatever it is asked. */
export class WrongServer extends LockConnectionError {}

/** Whether it is the server's own word, and not that of the connection. */
export function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError'
}

/** Whether the server lets nobody in without a better password. */
export function isUninvited(error: unknown): error is Error {
  return isReply(error) && uninvited.test(error.message)
}

/** "Not now", in the server's words. */
export function isPassing(error: Error): boolean {
  return passing.test(error.message)
}

/** "Not here": a replica that was the master. */
export function isDemoted(error: Error): boolean {
  return isReply(error) && demoted.test(error.message)
}

/** "Not here", of a node in a cluster. */
export function isOfCluster(error: Error): boolean {
  return isReply(error) && elsewhere.test(error.message)
}

/** Of an error that has ended a connection: the next one will end so, too (password, rights, wrong server). */
export function isFinal(error: Error): boolean {
  return error instanceof WrongServer || (isReply(error) && !isPassing(error))
}

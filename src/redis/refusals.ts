/** What the errors of a connection mean: a definite "no", "not now", or a failed connection. */
import { LockConnectionError } from '../errors.ts'

/**
 * Temporary server errors: the same request may succeed a moment later, or on another connection. "non local key" is
 * the error of a script that needs a key while the key's slot moves to another node (lua/shared/all.lua).
 */
const passing = /^(LOADING|BUSY|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|MOVED|ASK)\b|\bnon local key\b/
/** Errors of a server that is no longer the master. A new connection to its address may lead to the new master. */
const demoted = /\bREADONLY\b|\bcannot be used with replica\b/
/** Errors that only a node of a cluster sends: the key is on another node, or the keys are in several slots. */
const elsewhere = /^(MOVED|ASK|CROSSSLOT)\b/

/** Errors of a server that has not received the right password. */
const uninvited = /^(NOAUTH|WRONGPASS|ERR invalid password)\b/

/** The error of a server that does not store the locks. Such a server will refuse every request. */
export class WrongServer extends LockConnectionError {}

/** Returns whether the error is the server's reply, not a failure of the connection. */
export function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError'
}

/** Returns whether the server refuses every command because it has not received the right password. */
export function isUninvited(error: unknown): error is Error {
  return isReply(error) && uninvited.test(error.message)
}

/** Returns whether the error means "not now": the same request may succeed later. */
export function isPassing(error: Error): boolean {
  return passing.test(error.message)
}

/** Returns whether the error means that the server was the master and is a replica now. */
export function isDemoted(error: Error): boolean {
  return isReply(error) && demoted.test(error.message)
}

/** Returns whether the error shows that the server is a node of a cluster. */
export function isOfCluster(error: Error): boolean {
  return isReply(error) && elsewhere.test(error.message)
}

/** Returns whether the next attempt to connect would end with the same error (password, rights, wrong server). */
export function isFinal(error: Error): boolean {
  return error instanceof WrongServer || (isReply(error) && !isPassing(error) && !isDemoted(error))
}

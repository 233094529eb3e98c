/**
 * Removes the arguments of commands from errors. The arguments of AUTH and HELLO are passwords, and those of EVAL are
 * the texts of scripts. ioredis attaches the command to its errors. Its parser attaches the bytes that a server sent,
 * and a server that does not speak Redis's protocol may send back what it has received. If a server does not know a
 * command, because the command was renamed for instance, its reply repeats the arguments.
 */
import { isError, LockError } from '../errors.ts'

/** The properties that errors of sockets and of TLS have, and the names of errors that have one of their own. */
const kept = ['name', 'code', 'errno', 'syscall', 'address', 'port', 'host', 'hostname', 'path', 'library', 'reason']

/** The end of the reply to an unknown command: "ERR unknown command 'AUTH', with args beginning with: 'password'". */
const echo = /, (with args beginning with|command was):[\s\S]*/

/** The parser's complaint about a reply that it did not expect contains the whole reply. */
const unexpected = /(?<=^Command queue state error\b.*\.) Last reply:[\s\S]*/

/** Causes that are nested more deeply than this are left out. */
const DEEPEST = 8

/**
 * Returns a copy of an error of ioredis, of the same class and with the same stack, that has no arguments of a command.
 * The copy is an error of this realm (see `isError`), so the code behind this function can rely on `instanceof`.
 * An error of this package is returned unchanged, because its cause has gone through this function. The message of the
 * copy contains the messages of the causes. If a host has several addresses, the error of the socket has no message of
 * its own, but an error for each address.
 */
export function withoutArguments<E extends Error>(error: E, depth = 0): E {
  if (error instanceof LockError) return error
  const inner = (each: unknown) => (isError(each) && depth < DEEPEST ? [withoutArguments(each, depth + 1)] : [])
  const { errors: parts }: Partial<AggregateError> = error as Error
  const errors = Array.isArray(parts) ? parts.flatMap(inner) : []
  const [cause] = inner(error.cause)
  const own = error.message.replace(echo, '').replace(unexpected, '') || errors.map(each => each.message).join('; ')
  const message = cause && !own.includes(cause.message) ? `${own.replace(/:?\s*$/, '')}: ${cause.message}` : own
  const copy = parts ? new AggregateError(errors, message) : new Error(message)
  // The class of an error of another realm is of no use here.
  if (error instanceof Error) Object.setPrototypeOf(copy, Object.getPrototypeOf(error))
  for (const name of kept) {
    const value: unknown = Reflect.get(error, name)
    if (value !== Reflect.get(copy, name)) Object.assign(copy, { [name]: value })
  }
  if (cause) copy.cause = cause
  const frames = error.stack?.split('\n').filter(line => /^\s+at /.test(line)) ?? []
  copy.stack = [`${copy.name}: ${message}`, ...frames].join('\n')
  return copy as E
}

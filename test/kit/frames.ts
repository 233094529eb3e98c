/** Parses Redis's frames in a byte stream: commands on the way up, replies and messages on the way down. */
import { createHash } from 'node:crypto'
import { mutexScripts, readWriteScripts, semaphoreScripts } from '../../src/kinds/scripts.ts'
import { textOf } from '../../src/redis/scripts.ts'
import { settingsOf } from '../../src/settings.ts'
import { TOKEN_MEMORY as SOAK_MEMORY } from '../history/soak/terms.ts'

const CRLF = Buffer.from('\r\n')

/** Returns the offset at which the frame that begins at `at` ends; undefined if the frame is incomplete. */
export function endOfFrame(data: Buffer, at = 0): number | undefined {
  const line = data.indexOf(CRLF, at)
  if (line < 0) return undefined
  const count = Number(data.toString('latin1', at + 1, line))
  const next = line + CRLF.length
  switch (String.fromCharCode(data[at]!)) {
    case '$':
    case '=':
    case '!': {
      const end = count < 0 ? next : next + count + CRLF.length
      return end <= data.length ? end : undefined
    }
    case '*':
    case '>':
    case '~':
      return afterMany(data, next, count)
    case '%':
      return afterMany(data, next, 2 * count)
    default:
      return next
  }
}

function afterMany(data: Buffer, at: number, count: number): number | undefined {
  let end: number | undefined = at
  for (let i = 0; i < count && end !== undefined; i++) end = endOfFrame(data, end)
  return end
}

/** Cuts a byte stream into frames. */
export class Frames {
  #rest: Buffer = Buffer.alloc(0)

  take(data: Buffer): Buffer[] {
    this.#rest = this.#rest.length > 0 ? Buffer.concat([this.#rest, data]) : data
    const frames: Buffer[] = []
    for (let end = endOfFrame(this.#rest); end !== undefined; end = endOfFrame(this.#rest)) {
      frames.push(this.#rest.subarray(0, end))
      this.#rest = this.#rest.subarray(end)
      if (this.#rest.length === 0) break
    }
    return frames
  }
}

const all: readonly object[] = [mutexScripts, semaphoreScripts, readWriteScripts]
const scripts = all.flatMap(each => Object.entries<string>(each as Record<string, string>))

/** Returns the script's text as a client with the default `prefix` sends it. */
function sentText(script: string, tokenMemory: number): string {
  return textOf(script, { cluster: false, inboxes: 'lock:inbox:', tokenMemory })
}

/** The text of the mutex script that withdraws a request. */
export const leaveText = sentText(mutexScripts.leave, settingsOf({}).tokenMemory)

/**
 * Maps each script's hash to the script's name. The hash depends on `tokenMemory`, so the map has an entry for each of
 * the two values of `tokenMemory` that the tests use.
 */
const bySha = new Map(
  [settingsOf({}).tokenMemory, SOAK_MEMORY].flatMap(tokenMemory =>
    scripts.map(([name, script]): [string, string] => {
      const text = sentText(script, tokenMemory)
      return [createHash('sha1').update(text).digest('hex'), name]
    }),
  ),
)

/** Returns the first `count` words of a command. */
function words(frame: Buffer, count: number): string[] {
  const found: string[] = []
  let at = frame.indexOf(CRLF) + CRLF.length
  while (found.length < count && at < frame.length) {
    const end = endOfFrame(frame, at) as number
    found.push(frame.toString('utf8', frame.indexOf(CRLF, at) + CRLF.length, end - CRLF.length))
    at = end
  }
  return found
}

/** Returns the command's name in lower case; for a script, the script's own name, e.g. 'acquire'. */
export function commandOf(frame: Buffer): string {
  const [command = '', script = ''] = words(frame, 2)
  const name = command.toLowerCase()
  if (name === 'evalsha') return bySha.get(script) ?? name
  if (name === 'eval') return bySha.get(createHash('sha1').update(script).digest('hex')) ?? name
  return name
}

/** Returns the first channel that a SUBSCRIBE names. */
export function channelOf(frame: Buffer): string {
  return words(frame, 2)[1] ?? ''
}

/**
 * Returns the first word of a channel message: 'handoff', 'expiry', 'lost', 'beat' or 'free'. Returns undefined if the
 * frame is a reply.
 */
export function messageOf(frame: Buffer): string | undefined {
  if (!/^[*>]3\r\n\$7\r\nmessage\r\n/.test(frame.toString('latin1', 0, 20))) return undefined
  return words(frame, 3)[2]?.split(' ')[0]
}

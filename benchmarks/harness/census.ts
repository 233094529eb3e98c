/**
 * How many commands the clients of a rival have sent.
 *
 * Neither of the server's counters tells: INFO commandstats and total_commands_processed count what scripts call like
 * what clients send, and a lock whose script makes ten calls has still sent one command. Counting in the clients
 * would have to be done in every library, and a counting proxy would change what is measured. MONITOR does tell the
 * two apart (what a script calls comes from "lua"), but costs the server as much as the lock does. So the two are put
 * together:
 *
 *   once, before the trials    a short contended loop under MONITOR: for each command name, which share of its calls
 *                              came from a client (1 for EVALSHA, 0 for HSET in most rivals)
 *   in each trial              INFO commandstats before and after; the calls of each name times its share
 *
 * Exact wherever a rival does not both send a name and call it in a script, which is nearly everywhere. A name that
 * the loop did not show counts as sent, which may be too much, never too little.
 */
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Snapshot } from './server.ts'

/** What the benchmark itself sends, and what clients send when they connect. */
const housekeeping = new Set(['info', 'monitor', 'client', 'hello', 'config', 'flushall', 'auth', 'select', 'quit'])

/** Share of a command's calls that clients sent, by its name in lower case. */
export type Census = ReadonlyMap<string, number>

export interface Sighting {
  /** Commands that clients have sent so far. */
  sent(): number
  census(): Census
  stop(): void
}

/**
 * Watches a server by MONITOR, on a bare socket: what a client library makes of it loses its place on a busy server.
 * `unseen`: addresses of clients that do not count.
 */
export async function watchCommands(url: string, unseen: ReadonlySet<string> = new Set()): Promise<Sighting> {
  const byClient = new Map<string, number>()
  const byScript = new Map<string, number>()
  const count = (line: string) => {
    const [, source, command = ''] = monitored.exec(line) ?? []
    const name = command.toLowerCase()
    if (source === undefined || housekeeping.has(name) || unseen.has(source)) return
    const side = source === 'lua' ? byScript : byClient
    side.set(name, (side.get(name) ?? 0) + 1)
  }
  const socket = await monitor(url, count)
  return {
    sent: () => sum(byClient.values()),
    census: () => {
      const names = new Set([...byClient.keys(), ...byScript.keys()])
      const share = (name: string) => {
        const sent = byClient.get(name) ?? 0
        return sent / (sent + (byScript.get(name) ?? 0))
      }
      return new Map([...names].map(name => [name, share(name)]))
    },
    stop: () => socket.destroy(),
  }
}

/** As in `+1339518083.107412 [0 127.0.0.1:60866] "keys" "*"`, where what a script calls comes from `lua`. */
const monitored = /^\+[\d.]+ \[\d+ ([^\]]+)\] "([^"\\]*)"/
const answerWithin = 5_000

/** Resolves when MONITOR is in force: the OK comes before the first command. `heard` gets the line of each command. */
export async function monitor(url: string, heard: (line: string) => void): Promise<Socket> {
  const { protocol, hostname, port, username, password } = new URL(url)
  const where = { host: hostname, port: Number(port || 6379) }
  const socket = protocol === 'rediss:' ? connectTls({ ...where, servername: hostname }) : connect(where)
  try {
    await new Promise<void>((resolve, reject) => {
      let rest = ''
      socket.setTimeout(answerWithin, () => reject(new Error('no answer to MONITOR')))
      socket.on('error', reject)
      socket.setEncoding('utf8').on('data', (text: string) => {
        const lines = (rest + text).split('\r\n')
        rest = lines.pop()!
        for (const line of lines) {
          if (line.startsWith('-')) reject(new Error(`MONITOR is refused: ${line.slice(1)}`))
          // With a password there are two of them, one right after the other.
          if (line === '+OK') resolve(void socket.setTimeout(0))
          else heard(line)
        }
      })
      const words = password === '' ? [] : ['AUTH', username || 'default', password].map(decodeURIComponent)
      const request = [`*${words.length}`, ...words.flatMap(word => [`$${Buffer.byteLength(word)}`, word]), ''].join(
        '\r\n',
      )
      socket.write(`${words.length > 0 ? request : ''}MONITOR\r\n`)
    })
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

export interface Sent {
  readonly commands: number
  /** Time of the server in them, by its own measure, in µs. */
  readonly usec: number
}

/** What clients sent between two snapshots. */
export function sentBetween(before: Snapshot, after: Snapshot, census: Census): Sent {
  let commands = 0
  let usec = 0
  for (const [name, calls] of after.calls) {
    if (housekeeping.has(name)) continue
    const share = census.get(name) ?? 1
    commands += share * (calls - (before.calls.get(name) ?? 0))
    usec += share * ((after.usec.get(name) ?? 0) - (before.usec.get(name) ?? 0))
  }
  return { commands, usec }
}

function sum(numbers: Iterable<number>): number {
  let total = 0
  for (const number of numbers) total += number
  return total
}

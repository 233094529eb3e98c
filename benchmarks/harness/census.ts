/**
 * Counts how many commands the clients of a rival have sent.
 *
 * The server's counters (INFO commandstats, total_commands_processed) do not show this number, because they also count
 * the commands that scripts call. MONITOR shows the source of each command, which is "lua" if a script called it. But
 * MONITOR costs the server as much time as the lock does. A counting proxy would change what is measured. So the
 * benchmark combines MONITOR and INFO:
 *
 *  once, before the trials    A short contended loop under MONITOR shows, for each command, the share of calls that
 *                             came from clients (in most rivals 1 for EVALSHA and 0 for HSET).
 *  in each trial              INFO commandstats before and after the trial gives the number of calls of each command.
 *                             This number is multiplied by the command's share.
 *
 * The count of a command is exact if only clients send it, or if only scripts call it. In a few rivals, clients and
 * scripts use the same command. A command that was not seen in the short loop counts as sent by clients, so the result
 * may then be too high.
 */
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Snapshot } from './server.ts'

/** Commands that do not count: the benchmark itself sends them, or clients send them when they connect. */
const housekeeping = new Set([
  'info',
  'monitor',
  'client',
  'hello',
  'config',
  'slowlog',
  'flushall',
  'auth',
  'select',
  'quit',
])

/** For each command (in lower case), the share of its calls that came from clients and not from scripts, 0..1. */
export type Census = ReadonlyMap<string, number>

export interface Sighting {
  /** Returns the number of commands that clients have sent so far. */
  sent(): number
  census(): Census
  stop(): void
}

/**
 * Watches a server with MONITOR. This function uses a bare socket, because client libraries misread the output of
 * MONITOR on a busy server. If the address of a client is in `unseen`, its commands do not count.
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

/** A line such as `+1339518083.107412 [0 127.0.0.1:60866] "keys" "*"`. For calls by a script, the address is `lua`. */
const monitored = /^\+[\d.]+ \[\d+ ([^\]]+)\] "([^"\\]*)"/
const answerWithin = 5_000

/** Resolves when MONITOR is in effect. From then on, `heard` receives a line for each command. */
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
          // If there is a password, the server replies +OK to AUTH, and then +OK to MONITOR. `resolve` is then called
          // twice, but the second call has no effect.
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
  /** The time that the server took for all `commands` together, in µs, from INFO commandstats. */
  readonly usec: number
}

/** Returns how many commands clients sent between two snapshots, and the server's time for them. */
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

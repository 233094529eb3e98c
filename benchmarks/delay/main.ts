/**
 *   node main.js <ms each way> <host:port>…      says its ports by IPC, one a server, and ends when the channel does
 *
 * One process for all servers, because it takes a core while anything is under way. Each chunk is passed on `delay` after it
 * came, in order. Timers of Node fire on whole milliseconds, which is as long
 * as the delays of a local network, so while anything is under way that is due within two of them, this process spins
 * through its event loop: each turn looks at the clock and takes in what has come. While nothing is under way it
 * sleeps.
 */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

interface Parcel {
  readonly due: number
  readonly to: Socket
  /** Undefined: the end of the stream. */
  readonly chunk: Buffer | undefined
}

const [each = '0', ...servers] = process.argv.slice(2)
const delay = Number(each)
/** What is due sooner than this is waited for by spinning. */
const spinning = 2

/** All with the same delay, so the first to come is the first to be due. Emptied from `next` on. */
let underWay: Parcel[] = []
let next = 0
let awake = false

function post(to: Socket, chunk: Buffer | undefined): void {
  underWay.push({ due: performance.now() + delay, to, chunk })
  if (!awake) {
    awake = true
    deliver()
  }
}

function deliver(): void {
  const moment = performance.now()
  for (; next < underWay.length && underWay[next]!.due <= moment; next++) {
    const { to, chunk } = underWay[next]!
    if (to.destroyed) continue
    if (chunk) to.write(chunk)
    else to.destroy()
  }
  if (next === underWay.length) {
    underWay = []
    next = 0
    awake = false
    return
  }
  if (next > 1_000) {
    underWay = underWay.slice(next)
    next = 0
  }
  const left = underWay[next]!.due - moment
  if (left > spinning) setTimeout(deliver, left - spinning)
  else setImmediate(deliver)
}

/** Resolves with the port at which the server is reached through here. */
function proxyOf(server: string): Promise<number> {
  const { hostname: host, port } = new URL(`tcp://${server}`)
  const proxy = createServer({ noDelay: true }, client => {
    const upstream = connect({ host, port: Number(port), noDelay: true })
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.on('data', chunk => post(to, chunk))
      from.on('error', () => {}) // its close follows
      from.on('close', () => post(to, undefined))
    }
  })
  return new Promise(resolve => {
    proxy.listen(0, '127.0.0.1', 4_096, () => resolve((proxy.address() as AddressInfo).port))
  })
}

process.on('disconnect', () => process.exit())
process.send?.(await Promise.all(servers.map(proxyOf)))

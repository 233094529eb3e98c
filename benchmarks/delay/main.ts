/**
 *   node main.js <ms each way> <host:port>… sends its ports over IPC, one per server, and ends when the channel does
 *
 * One process serves all servers, because it uses a whole core while data is in transit. Each chunk is forwarded
 * `delay` ms after it came, in order. Node's timers fire on whole milliseconds, which is as long as the delays of a
 * local network. So while a chunk is due within two milliseconds, this process spins through its event loop: each turn
 * checks the clock and accepts new data. While no data is in transit, it sleeps.
 */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

interface Parcel {
  readonly due: number
  readonly to: Socket
  /** Undefined marks the end of the stream. */
  readonly chunk: Buffer | undefined
}

const [each = '0', ...servers] = process.argv.slice(2)
const delay = Number(each)
/** In ms: for a chunk that is due sooner than this, the process spins. */
const spinning = 2

/** All chunks have the same delay, so the first to arrive is the first to be due. Entries before `next` are done. */
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

/** Resolves to the port through which this proxy reaches the server. */
function proxyOf(server: string): Promise<number> {
  const { hostname: host, port } = new URL(`tcp://${server}`)
  const proxy = createServer({ noDelay: true }, client => {
    const upstream = connect({ host, port: Number(port), noDelay: true })
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.on('data', chunk => post(to, chunk))
      from.on('error', () => {}) // the close event follows
      from.on('close', () => post(to, undefined))
    }
  })
  return new Promise(resolve => {
    proxy.listen(0, '127.0.0.1', 4_096, () => resolve((proxy.address() as AddressInfo).port))
  })
}

process.on('disconnect', () => process.exit())
process.send?.(await Promise.all(servers.map(proxyOf)))

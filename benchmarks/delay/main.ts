/**
 * A proxy that delays all traffic between clients and servers.
 *
 *   node main.js <ms each way> <host:port>…
 *
 * The proxy listens on one port per server, sends the ports over IPC, and ends when the IPC channel closes. It forwards
 * all data in order, each chunk `<ms each way>` after its arrival.
 *
 * Node's timers fire on whole milliseconds, which is too coarse for the delays of a local network. So while a chunk is
 * due within two milliseconds, the process spins through its event loop, checking the clock and accepting new data.
 * Spinning takes a whole core, so one process serves all servers.
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
/** If the next chunk is due in less than this time (in ms), the process spins. */
const spinning = 2

/**
 * Chunks in the order of arrival, which is also the order in which they are due. Entries before `next` have been
 * forwarded.
 */
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

/** Resolves to the port on which the proxy listens for the clients of this server. */
function proxyOf(server: string): Promise<number> {
  const { hostname: host, port } = new URL(`tcp://${server}`)
  const proxy = createServer({ noDelay: true }, client => {
    const upstream = connect({ host, port: Number(port), noDelay: true })
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.on('data', chunk => post(to, chunk))
      from.on('error', () => {}) // 'close' follows each error
      from.on('close', () => post(to, undefined))
    }
  })
  return new Promise(resolve => {
    proxy.listen(0, '127.0.0.1', 4_096, () => resolve((proxy.address() as AddressInfo).port))
  })
}

process.on('disconnect', () => process.exit())
process.send?.(await Promise.all(servers.map(proxyOf)))

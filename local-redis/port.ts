import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * Ports are chosen above 6379 and below the range that systems use for outgoing connections. While a killed server
 * waits for its restart, an outgoing connection could take a port from that range. A client that keeps reconnecting
 * could even get the port that it connects to as its own, and so connect to itself.
 */
const lowest = 10_000
const highest = 32_767

export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(lowest, highest + 1)
    if (await isFree(port)) return port
  }
  throw new Error(`no free loopback port found between ${lowest} and ${highest}`)
}

function isFree(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * Below the range from which systems take the ports of outgoing connections, and above 6379. While a killed server
 * waits for its restart, any outgoing connection could take a port from that range. A client that keeps reconnecting
 * could even be given the very port that it connects to, and so connect to itself.
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

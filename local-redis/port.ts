import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * The range of ports to choose from: above 6379, and below the ports that systems use for outgoing connections. If a
 * killed server had one of those ports, an outgoing connection could take the port before the server restarts. A client
 * that keeps reconnecting to the killed server could even get that port for its own end of the connection. It would
 * then connect to itself.
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

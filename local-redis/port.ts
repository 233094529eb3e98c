import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * The range of ports to choose from: above 6379, and below the ports that systems use for outgoing connections. If a
 * server had a port for outgoing connections and were killed, an outgoing connection could take its port before the
 * server restarts. If a client kept reconnecting to the killed server, the system could even choose that port for the
 * client's own end of the connection. The client would then connect to itself.
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

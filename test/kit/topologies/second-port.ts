/** A second port for a server that needs one: for TLS, or for the bus of a cluster. */
import { freePort } from '../../../local-redis/port.ts'

const attempts = 5

/**
 * Starts a server with a free second port. If another program takes the port before the server starts, tries again with
 * another port.
 */
export async function withSecondPort<T>(start: (port: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort()
    try {
      return await start(port)
    } catch (error) {
      if (attempt === attempts || !/address already in use/i.test(String(error))) throw error
    }
  }
}

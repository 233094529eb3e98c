/** A second port for a server that needs one: for TLS, or for the bus of a cluster. */
import { freePort } from '../../../local-redis/port.ts'

const attempts = 5

/**
 * A port that was just free may be taken when the server starts. In that case the start is repeated with another port.
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

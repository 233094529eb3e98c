import { connect } from 'node:net'

/**
 * Sends one inline command to a loopback port. Returns the first line of the reply, or undefined if nothing listens
 * there.
 */
export function ask(port: number, command: string): Promise<string | undefined> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`${command}\r\n`))
    socket.once('error', () => resolve(undefined))
    socket.once('data', data => {
      socket.destroy()
      resolve(data.toString().split('\r\n')[0])
    })
  })
}

/** Waits until the condition is true. Returns false if this takes too long. */
export async function eventually(condition: () => Promise<boolean>, withinMs = 5_000): Promise<boolean> {
  const deadline = Date.now() + withinMs
  while (Date.now() < deadline) {
    if (await condition()) return true
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  return false
}

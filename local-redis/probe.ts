import { connect } from 'node:net'

export interface Answer {
  /**
   * The id of the process that answered. Undefined if the server does not report it, e.g. because it requires a
   * password.
   */
  readonly pid: number | undefined
}

const answerWithinMs = 500

/**
 * Sends PING to the loopback port and asks for the process id. Returns undefined if no ready server answers. Uses a raw
 * socket, because a client library would reconnect and would decide for itself what "ready" means.
 */
export function probe(port: number): Promise<Answer | undefined> {
  return new Promise(resolve => {
    let received = ''
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\nINFO server\r\n'))
    const finish = (answer: Answer | undefined) => {
      clearTimeout(limit)
      socket.destroy()
      resolve(answer)
    }
    const limit = setTimeout(finish, answerWithinMs, undefined)
    socket.setEncoding('utf8')
    socket.on('error', () => finish(undefined))
    socket.on('close', () => finish(undefined))
    socket.on('data', (chunk: string) => {
      received += chunk
      const answer = read(received)
      if (answer !== 'incomplete') finish(answer)
    })
  })
}

/**
 * Expects two replies: +PONG, and the text of INFO. An error in place of a reply also counts as an answer: NOAUTH means
 * that the server is up. The exception is LOADING, because such a server is not ready yet.
 */
function read(received: string): Answer | undefined | 'incomplete' {
  const [ping, info] = received.split('\r\n')
  if (!received.includes('\r\n') || ping === undefined || info === undefined) return 'incomplete'
  if (!ping.startsWith('+PONG') && !ping.startsWith('-')) return undefined
  if (ping.startsWith('-LOADING')) return undefined
  if (info.startsWith('-') && received.split('\r\n').length > 2) return { pid: undefined }
  const pid = /^process_id:(\d+)\r\n/m.exec(received)?.[1]
  return pid === undefined ? 'incomplete' : { pid: Number(pid) }
}

/** Tests which requests are sent at once, and which are sent together in one write. */
import { Writable } from 'node:stream'
import type { Cluster, Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { Writes } from '../../src/redis/writes.ts'
import { settled } from './promises.ts'

/** A fake server that records the requests of each write. */
class Server {
  readonly writes: string[] = []
  readonly stream = new Writable({
    decodeStrings: false,
    write: (chunk, _encoding, done) => {
      this.writes.push(String(chunk))
      done()
    },
    writev: (chunks, done) => {
      this.writes.push(chunks.map(({ chunk }) => String(chunk)).join(''))
      done()
    },
  })
}

function asking(server: Server, writes: Writes): (...texts: string[]) => void {
  return (...texts) => {
    for (const text of texts) {
      writes.next()
      server.stream.write(text)
    }
  }
}

test('the first two requests of a turn of the event loop are sent at once, the others in one write at its end', async () => {
  const server = new Server()
  const ask = asking(server, new Writes(server as unknown as Redis))
  ask('a', 'b')
  expect(server.writes).toEqual(['a', 'b'])
  ask('c', 'd')
  await Promise.resolve()
  ask('e')
  expect(server.writes).toEqual(['a', 'b'])
  await settled()
  expect(server.writes).toEqual(['a', 'b', 'cde'])
})

test('requests that belong together share a write, even if they are the first of their turn', async () => {
  const server = new Server()
  const writes = new Writes(server as unknown as Redis)
  const ask = asking(server, writes)
  for (const first of ['', 'a', 'b']) {
    if (first) ask(first)
    writes.together()
    ask('c', 'd')
    await settled()
  }
  expect(server.writes).toEqual(['cd', 'a', 'cd', 'b', 'cd'])
})

test('each master of a cluster gets its requests in one write; a server without a socket is left out', async () => {
  const [one, other] = [new Server(), new Server()]
  const nodes = () => [one, other, { stream: undefined }]
  const writes = new Writes({ nodes } as unknown as Cluster)
  const [askOne, askOther] = [asking(one, writes), asking(other, writes)]
  askOne('a')
  askOther('b')
  askOne('c', 'd')
  askOther('e', 'f')
  await settled()
  expect([one.writes, other.writes]).toEqual([
    ['a', 'cd'],
    ['b', 'ef'],
  ])
})

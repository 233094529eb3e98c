/**
 * Counts the messages that clients receive during `happening`. The server does not count received messages: it reports
 * how many clients receive a PUBLISH, but only to the publisher. So PUBSUB first shows the subscribers of each channel,
 * and then MONITOR shows to which channels messages are published. MONITOR slows the server, so nothing is timed
 * meanwhile.
 */
import { randomUUID } from 'node:crypto'
import { monitor } from './census.ts'
import type { Server } from './server.ts'

const publishing = /^\+[\d.]+ \[\d+ [^\]]+\] "publish" "([^"]*)"/i

export async function deliveries({ url, redis }: Server, happening: () => Promise<unknown>): Promise<number> {
  const channels = (await redis.pubsub('CHANNELS')) as string[]
  const counts = channels.length === 0 ? [] : ((await redis.pubsub('NUMSUB', ...channels)) as (string | number)[])
  const listeners = new Map(channels.map(channel => [channel, Number(counts[counts.indexOf(channel) + 1])]))
  let received = 0
  const end = randomUUID()
  let seeTheEnd = () => {}
  const seenTheEnd = new Promise<void>(resolve => {
    seeTheEnd = resolve
  })
  const socket = await monitor(url, line => {
    const [, channel] = publishing.exec(line) ?? []
    if (channel !== undefined) received += listeners.get(channel) ?? 0
    else if (line.includes(end)) seeTheEnd()
  })
  try {
    await happening()
    // When MONITOR shows this ECHO, it has shown all earlier commands.
    await redis.echo(end)
    await seenTheEnd
    return received
  } finally {
    socket.destroy()
  }
}

/**
 * Counts the messages that clients receive during `happening`. The server has no counter for this, and only the
 * publisher learns how many clients receive a PUBLISH. So PUBSUB first shows the number of subscribers of each channel.
 * Then MONITOR shows the channel of each published message. MONITOR slows the server, so nothing is timed during this
 * count.
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

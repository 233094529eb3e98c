/**
 * Counts the messages that clients receive while something happens. The server's count of PUBLISH commands is not
 * enough, and the number of receivers is reported only to the caller, which may be a script. So MONITOR shows the
 * channels, at a moment when nothing is timed, and PUBSUB shows their subscribers beforehand.
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
    // By then MONITOR has shown everything before it.
    await redis.echo(end)
    await seenTheEnd
    return received
  } finally {
    socket.destroy()
  }
}

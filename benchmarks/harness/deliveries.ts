/**
 * How many messages clients receive while something happens. The server counts PUBLISH commands, and tells the caller of each how
 * many have received it: of a script's, only the script. So MONITOR tells the channels, for a moment in which nothing is timed, and
 * PUBSUB who listened to them before.
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
    // Everything before it has been told by then.
    await redis.echo(end)
    await seenTheEnd
    return received
  } finally {
    socket.destroy()
  }
}

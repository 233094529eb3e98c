/**
 * The broker of live-mutex for one trial; live-mutex.ts starts it.
 *
 *   node live-mutex-broker.js <folder> tcp|socket
 *
 * The broker ends on its own when no client is connected any longer.
 */
import { rename, rm, writeFile } from 'node:fs/promises'
import type { Server } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { load } from './installed.ts'
import type { Address } from './live-mutex.ts'

interface Library {
  Broker: new (options: Address) => Broker
}
interface Broker {
  readonly emitter: NodeJS.EventEmitter
  readonly wss: Server
  ensure(): Promise<unknown>
}

/** In ms: how long the broker waits for the first client. */
const first = 15_000
/** In ms: how long the broker stays after the last client has gone. */
const lonely = 3_000
/** In ms: how often the broker counts its clients. */
const look = 500

const [folder = '', transport = 'tcp'] = process.argv.slice(2)

try {
  const { broker, address } = await listen()
  // The rename makes the complete file appear at once.
  const draft = join(folder, 'address.draft')
  await writeFile(draft, JSON.stringify(address))
  await rename(draft, join(folder, 'address'))
  await untilLonely(broker)
} finally {
  await rm(folder, { recursive: true, force: true })
}
process.exit()

async function listen(): Promise<{ broker: Broker; address: Address }> {
  const { Broker } = await load<Library>('live-mutex')
  for (let tries = 1; ; tries++) {
    const address = someAddress()
    const broker = new Broker(address)
    broker.emitter.on('warning', () => {})
    try {
      await broker.ensure()
      return { broker, address }
    } catch (error) {
      if (tries === 20) throw error
    }
  }
}

/**
 * Chooses an address to listen on. live-mutex refuses port 0 and ports above 49151, so a free port has to be found by
 * trying.
 */
function someAddress(): Address {
  if (transport === 'socket') return { udsPath: join(folder, 'socket') }
  return { host: '127.0.0.1', port: 20_000 + Math.floor(Math.random() * 10_000) }
}

async function untilLonely({ wss }: Broker): Promise<void> {
  const connections = promisify(wss.getConnections.bind(wss))
  let end = performance.now() + first
  const prolong = () => {
    end = performance.now() + lonely
  }
  wss.on('connection', prolong) // a client may connect and disconnect between two checks
  while (performance.now() < end) {
    await sleep(look)
    if ((await connections()) > 0) prolong()
  }
}

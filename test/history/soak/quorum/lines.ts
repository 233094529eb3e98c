/**
 * The connections of one process to the servers of a quorum, each through a proxy, and the faults of one connection.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { FaultProxy } from '../../../kit/fault-proxy.ts'
import type { Choices } from '../fault.ts'
import type { Ways } from '../post.ts'
import { Turns } from '../scene.ts'
import type { LineFault } from './plan.ts'

/** The delay on a slow connection, in ms. Many calls have a shorter timeout. */
const SLOW = 500

export class Line {
  readonly proxy: FaultProxy
  /**
   * Faults of one connection come one after another, because a connection that has lost bytes must be cut before the
   * next fault.
   */
  readonly #turns = new Turns()

  constructor(proxy: FaultProxy) {
    this.proxy = proxy
  }

  async break(name: LineFault, choices: Choices): Promise<void> {
    await this.#turns.inTurn(() => lineFaults[name](this.proxy, choices))
  }
}

export class Lines implements Ways {
  /** The connections, by the numbers of the servers. */
  readonly lines: readonly Line[]

  private constructor(lines: readonly Line[]) {
    this.lines = lines
  }

  static async open(urls: readonly string[]): Promise<Lines> {
    const proxies = await Promise.all(urls.map(url => FaultProxy.open(url)))
    return new Lines(proxies.map(proxy => new Line(proxy)))
  }

  get urls(): readonly string[] {
    return this.lines.map(({ proxy }) => proxy.url)
  }

  get used(): boolean {
    return this.lines.every(({ proxy }) => proxy.connections > 0)
  }

  async close(): Promise<void> {
    await Promise.all(this.lines.map(({ proxy }) => proxy.close()))
  }
}

const lineFaults: Readonly<Record<LineFault, (proxy: FaultProxy, choices: Choices) => Promise<void>>> = {
  cut: async proxy => proxy.cut(),
  async refuse(proxy, { duration }) {
    proxy.refuse()
    proxy.cut()
    await sleep(duration)
    proxy.accept()
  },
  partition: swallowing('up', 'down'),
  'half-open up': swallowing('up'),
  'half-open down': swallowing('down'),
  async delay(proxy, { duration }) {
    proxy.delay(SLOW)
    await sleep(duration)
    proxy.delay(0)
  },
  /**
   * Holds back the requests or the replies of this connection. They arrive after the fault, when the sender of the
   * requests has given up.
   */
  async hold(proxy, { duration, dice }) {
    proxy.hold(dice % 2 === 0 ? 'up' : 'down')
    await sleep(duration)
    proxy.heal()
  },
}

function swallowing(...directions: ('up' | 'down')[]) {
  return async (proxy: FaultProxy, { duration }: Choices) => {
    for (const direction of directions) proxy.swallow(direction)
    await sleep(duration)
    proxy.cut()
    proxy.heal()
  }
}

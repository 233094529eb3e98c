/**
 * The faults: one function for each kind of fault. What a function breaks is repaired later, either by the function
 * itself or by `heal`.
 */
import type { SimulatedClient } from './client.ts'
import type { Net } from './network.ts'
import type { Fault, FaultKind } from './plan.ts'

export interface Stage extends Net {
  readonly clients: readonly SimulatedClient[]
  close(client: SimulatedClient): void
  forceRelease(client: SimulatedClient, key: string): void
}

const faults: Record<FaultKind, (stage: Stage, fault: Fault, client: SimulatedClient) => void> = {
  /** Breaks the connection for commands, the connection for messages, or both. */
  cut(_stage, { variant }, client) {
    if (variant % 3 !== 1) client.commands.break()
    if (variant % 3 !== 0) client.messages.break()
  },

  /** Makes a connection half-open: what one side sends does not arrive, and neither side notices. */
  stall(stage, { ms, variant }, client) {
    const redis = variant < 3 ? client.commands : client.messages
    redis.stall({ out: variant % 3 !== 1, in: variant % 3 !== 0 })
    later(stage, ms, () => redis.resume())
  },

  /** Partitions the client: nothing gets through, and connecting fails. */
  partition(stage, { ms, variant }, client) {
    const both = [client.commands, client.messages]
    stage.weather.unreachable.set(client.process, variant % 2 ? 'refused' : 'silent')
    for (const redis of both) {
      if (variant < 3) redis.break()
      else redis.stall({ out: true, in: true })
    }
    later(stage, ms, () => {
      stage.weather.unreachable.delete(client.process)
      for (const redis of both) redis.resume()
    })
  },

  /** Stops the process, or blocks its event loop. */
  freeze(stage, { ms }, client) {
    client.process.freeze()
    later(stage, ms, () => client.process.thaw())
  },

  crash(stage, _fault, client) {
    if (stage.clients.some(other => other !== client && other.open)) client.crash()
  },

  close(stage, _fault, client) {
    stage.timeline.at(stage.timeline.now, () => stage.close(client), client.process)
  },

  dataLoss({ server, random }, { key, variant }, client) {
    if (variant < 3) server.loseData()
    else server.loseKey(client.lockOf(key), random.int(0, 3))
  },

  serverDown(stage, { ms }) {
    for (const client of stage.clients) {
      stage.weather.unreachable.set(client.process, 'refused')
      client.commands.break()
      client.messages.break()
    }
    later(stage, ms, () => stage.weather.unreachable.clear())
  },

  serverPause(stage, { ms }) {
    const all = stage.clients.flatMap(({ commands, messages }) => [commands, messages])
    for (const redis of all) redis.stall({ out: true, in: false })
    later(stage, ms, () => {
      for (const redis of all) redis.resume()
    })
  },

  /** Makes the server refuse all scripts with an error, either a temporary or a lasting one. */
  refusal(stage, { ms, variant }) {
    const texts = [
      'BUSY Redis is busy running a script',
      'LOADING Redis is loading',
      'READONLY You can’t write',
      'OOM no memory',
    ]
    stage.weather.refusal = texts[variant % texts.length]
    later(stage, ms, () => {
      stage.weather.refusal = undefined
    })
  },

  /** Loses all messages for a while. In some histories, some messages are lost all the time (plan.ts). */
  messages(stage, { ms }) {
    const { messageLoss } = stage.weather
    stage.weather.messageLoss = 1
    later(stage, ms, () => {
      stage.weather.messageLoss = messageLoss
    })
  },

  /**
   * Does nothing at the time of the fault. Instead, throughout the history, the server forgets scripts at random
   * (plan.ts).
   */
  noScript() {},

  /**
   * Sends false messages: that a lock is free, that a hold is lost, or that the lock was granted. A waiter that may be
   * queued receives no false message of a grant, because its client could mistake it for the message of a real grant.
   */
  noise({ server, clients }, { key, variant }, client) {
    const lock = client.lockOf(key)
    const inbox = `${client.process.name}:`.padEnd(12, '_')
    const ids = [...clients].flatMap(({ holds }) => [...holds.values()].map(({ name }) => name.id))
    const grant = (id: string) => server.publish(`lock:inbox:${inbox}`, `handoff ${id} 1 ${lock}`)
    if (variant < 2) server.publish(`${lock}:unlock`, 'free')
    else if (variant < 4) for (const id of ids) server.publish(`lock:inbox:${inbox}`, `lost ${id} 1 ${lock}`)
    else if (variant < 5) grant(`${inbox}________nobody__`)
    else {
      for (const [id, { fair, fairAfter }] of client.calling) if (!fair && fairAfter === undefined) grant(id)
      for (const id of client.holds.keys()) grant(id)
    }
  },

  force(stage, { key }, client) {
    stage.timeline.at(stage.timeline.now, () => stage.forceRelease(client, key), client.process)
  },
}

export function strike(stage: Stage, fault: Fault): void {
  const client = stage.clients[fault.client] as SimulatedClient
  stage.trace.note('fault', () => `${fault.kind} ${client.process.name} ${fault.ms} ms, variant ${fault.variant}`)
  faults[fault.kind](stage, fault, client)
}

/** Ends all faults. */
export function heal({ weather, clients, trace }: Stage): void {
  trace.note('world', () => 'heals')
  weather.refusal = undefined
  weather.unreachable.clear()
  weather.noScript = 0
  for (const client of clients) {
    client.process.thaw()
    client.commands.resume()
    client.messages.resume()
  }
}

function later({ timeline }: Stage, ms: number, put: () => void): void {
  timeline.at(timeline.now + ms, put)
}

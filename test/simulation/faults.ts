/**
 * The faults: one function for each kind of fault. What a function breaks is repaired later, either by the function
 * itself or by `heal`.
 */
import type { SimulatedClient, Wire } from './client.ts'
import type { Net, SimulatedRedis } from './network.ts'
import type { Fault, FaultKind } from './plan.ts'

export interface Stage extends Pick<Net, 'timeline' | 'random' | 'trace'> {
  /** The ways to the servers. */
  readonly nets: readonly Net[]
  readonly clients: readonly SimulatedClient[]
  close(client: SimulatedClient): void
  forceRelease(client: SimulatedClient, key: string): void
}

/** `nets`: the ways to the servers that the fault hits. */
type Run = (stage: Stage, fault: Fault, client: SimulatedClient, nets: readonly Net[]) => void

const faults: Record<FaultKind, Run> = {
  /** Breaks the connection for commands, the connection for messages, or both. */
  cut(_stage, { variant }, client, nets) {
    for (const { commands, messages } of wires([client], nets)) {
      if (variant % 3 !== 1) commands.break()
      if (variant % 3 !== 0) messages.break()
    }
  },

  /** Makes a connection half-open: what one side sends does not arrive, and neither side notices. */
  stall(stage, { ms, variant }, client, nets) {
    for (const { commands, messages } of wires([client], nets)) {
      const redis = variant < 3 ? commands : messages
      redis.stall({ out: variant % 3 !== 1, in: variant % 3 !== 0 })
      later(stage, ms, () => redis.resume())
    }
  },

  /** Partitions the client: nothing gets through, and connecting fails. */
  partition(stage, { ms, variant }, client, nets) {
    for (const { weather } of nets) weather.unreachable.set(client.process, variant % 2 ? 'refused' : 'silent')
    const all = sockets([client], nets)
    for (const redis of all) {
      if (variant < 3) redis.break()
      else redis.stall({ out: true, in: true })
    }
    later(stage, ms, () => {
      for (const { weather } of nets) weather.unreachable.delete(client.process)
      for (const redis of all) redis.resume()
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

  dataLoss({ random }, { key, variant }, client, nets) {
    for (const { server } of nets) {
      if (variant < 3) server.loseData()
      else server.loseKey(client.lockOf(key), random.int(0, 3))
    }
  },

  serverDown,

  restart(stage, fault, client, nets) {
    for (const { server } of nets) server.restart()
    serverDown(stage, fault, client, nets)
  },

  serverPause(stage, { ms }, _client, nets) {
    const all = sockets(stage.clients, nets)
    for (const redis of all) redis.stall({ out: true, in: false })
    later(stage, ms, () => {
      for (const redis of all) redis.resume()
    })
  },

  /** Makes servers refuse all scripts with an error, either a temporary or a lasting one. May end connections first. */
  refusal(stage, { ms, variant }, _client, nets) {
    const texts = [
      'BUSY Redis is busy running a script',
      'LOADING Redis is loading',
      'READONLY You can’t write',
      'OOM no memory',
    ]
    for (const { weather } of nets) weather.refusal = texts[variant % texts.length]
    if (variant % 2 === 0) for (const redis of sockets(stage.clients, nets)) redis.break()
    later(stage, ms, () => {
      for (const { weather } of nets) weather.refusal = undefined
    })
  },

  /** Loses all messages for a while. In some histories, some messages are lost all the time (plan.ts). */
  messages(stage, { ms }, _client, nets) {
    for (const { weather } of nets) {
      const { messageLoss } = weather
      weather.messageLoss = 1
      later(stage, ms, () => {
        weather.messageLoss = messageLoss
      })
    }
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
  noise({ clients }, { key, variant }, client, nets) {
    const lock = client.lockOf(key)
    const inbox = `${client.process.name}:`.padEnd(12, '_')
    const ids = [...clients].flatMap(({ holds }) => [...holds.values()].map(({ name }) => name.id))
    const publish = (channel: string, text: string) => {
      for (const { server } of nets) server.publish(channel, text)
    }
    const grant = (id: string) => publish(`lock:inbox:${inbox}`, `handoff ${id} 1 ${lock}`)
    if (variant < 2) publish(`${lock}:unlock`, 'free')
    else if (variant < 4) for (const id of ids) publish(`lock:inbox:${inbox}`, `lost ${id} 1 ${lock}`)
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

function serverDown(stage: Stage, { ms }: Fault, _client: SimulatedClient, nets: readonly Net[]): void {
  for (const { weather } of nets) for (const { process } of stage.clients) weather.unreachable.set(process, 'refused')
  for (const redis of sockets(stage.clients, nets)) redis.break()
  later(stage, ms, () => {
    for (const { weather } of nets) weather.unreachable.clear()
  })
}

export function strike(stage: Stage, fault: Fault): void {
  const client = stage.clients[fault.client] as SimulatedClient
  const nets = fault.servers.map(i => stage.nets[i] as Net)
  const where = () => (stage.nets.length > 1 ? ` at ${nets.map(({ host }) => host)}` : '')
  stage.trace.note(
    'fault',
    () => `${fault.kind} ${client.process.name} ${fault.ms} ms, variant ${fault.variant}${where()}`,
  )
  faults[fault.kind](stage, fault, client, nets)
}

/** Lets servers die: until the end of the history, they do not answer, and nobody can connect. */
export function kill(stage: Stage, servers: readonly number[], how: 'refused' | 'silent'): void {
  const nets = servers.map(i => stage.nets[i] as Net)
  for (const net of nets) {
    stage.trace.note('fault', () => `${net.host} is dead: ${how}`)
    net.weather.dead = how
  }
  for (const redis of sockets(stage.clients, nets)) {
    if (how === 'refused') redis.break()
    else redis.stall({ out: true, in: true })
  }
}

/** Ends all faults. */
export function heal({ nets, clients, trace }: Stage): void {
  trace.note('world', () => 'heals')
  for (const { weather } of nets) {
    weather.refusal = undefined
    weather.unreachable.clear()
    weather.noScript = 0
  }
  for (const client of clients) client.process.thaw()
  for (const redis of sockets(clients, nets)) redis.resume()
}

/** Returns the connections of these clients to these servers. */
function wires(clients: readonly SimulatedClient[], nets: readonly Net[]): Wire[] {
  return clients.flatMap(client => client.wires.filter(({ net }) => nets.includes(net)))
}

function sockets(clients: readonly SimulatedClient[], nets: readonly Net[]): SimulatedRedis[] {
  return wires(clients, nets).flatMap(({ commands, messages }) => [commands, messages])
}

function later({ timeline }: Stage, ms: number, put: () => void): void {
  timeline.at(timeline.now + ms, put)
}

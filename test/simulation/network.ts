/**
 * The network between clients and the server. A connection consists of two pipes. Each pipe delivers in order, with
 * delays of its own. A stalled pipe keeps its content until it resumes. If a pipe is cut, its content is lost. In
 * addition, the network may lose, repeat or delay a single message. A real connection does none of this, but
 * redis-baton must work even then.
 */
import { EventEmitter } from 'node:events'
import { idleWrite } from '../../src/redis/destination.ts'
import { memoryInfo } from '../../src/redis/eviction.ts'
import type { Random } from '../kit/random.ts'
import type { Reply } from './redis/lua.ts'
import { ErrorReply } from './redis/values.ts'
import type { Listener, Server } from './server.ts'
import type { Process, Timeline } from './timeline.ts'
import type { Trace } from './trace.ts'

/** The present faults of the network and the server. */
export interface Weather {
  /**
   * The delay in one direction, in ms. It is a random time from `least` to `most`. With the probability `spikes`, a
   * random time of up to `spike` is added.
   */
  readonly delay: { readonly least: number; readonly most: number; readonly spike: number; readonly spikes: number }
  /** The probabilities, from 0 to 1, that a message is lost, duplicated, or delivered late and out of order. */
  messageLoss: number
  readonly messageEcho: number
  readonly messageLate: number
  /** The probability that the server has forgotten a script, from 0 to 1. */
  noScript: number
  /** The error with which the server answers every script instead of running it. */
  refusal: string | undefined
  /** The processes that cannot connect: their attempts are refused, or get no answer. */
  readonly unreachable: Map<Process, 'refused' | 'silent'>
  /** Whether nobody can connect any more: the server is gone, or stopped, until the end of the history. */
  dead?: 'refused' | 'silent' | undefined
  /** How many ms the data of a closed connection may be under way. */
  readonly lingers: number
}

/** The way to one address, and the server there. */
export interface Net {
  /** The name of the host. */
  readonly host: string
  /** Whether INFO calls the server a replica. */
  readonly replica?: boolean
  readonly timeline: Timeline
  readonly random: Random
  readonly server: Server
  readonly weather: Weather
  readonly trace: Trace
}

/** One direction of a connection. */
class Pipe {
  readonly #net: Net
  readonly #process: Process | undefined
  #last = 0
  #cut = false
  #held: (() => void)[] | undefined

  /** `process`: the process at the receiving end; undefined: the server. */
  constructor(net: Net, process: Process | undefined) {
    this.#net = net
    this.#process = process
  }

  push(arrive: () => void): void {
    const { timeline, random, weather } = this.#net
    const { least, most, spike, spikes } = weather.delay
    const delay = random.between(least, most) + (random.chance(spikes) ? random.between(0, spike) : 0)
    this.#last = Math.max(this.#last, timeline.now + delay)
    timeline.at(this.#last, () => this.#out(arrive), this.#process)
  }

  stall(): void {
    this.#held ??= []
  }

  resume(): void {
    const held = this.#held
    if (!held) return
    this.#held = undefined
    const { timeline } = this.#net
    this.#last = Math.max(this.#last, timeline.now)
    // The kept content arrives before anything that is sent later, because its events are scheduled first.
    for (const arrive of held) timeline.at(timeline.now, () => this.#out(arrive), this.#process)
  }

  cut(): void {
    this.#cut = true
    this.#held = undefined
  }

  #out(arrive: () => void): void {
    if (this.#cut) return
    if (this.#held) this.#held.push(arrive)
    else arrive()
  }
}

/** One TCP connection, from its beginning to its end. */
class Session implements Listener {
  readonly toServer: Pipe
  readonly toClient: Pipe
  readonly #net: Net
  readonly #redis: SimulatedRedis
  readonly #starts: number
  readonly #pending = new Set<(error: Error) => void>()

  constructor(net: Net, redis: SimulatedRedis) {
    this.#net = net
    this.#redis = redis
    this.#starts = startsOf(net)
    this.toServer = new Pipe(net, undefined)
    this.toClient = new Pipe(net, redis.process)
  }

  ask<T>(run: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#pending.add(reject)
      this.toServer.push(() => {
        if (this.#starts !== startsOf(this.#net)) return
        const answer = outcomeOf(run)
        this.toClient.push(() => {
          this.#pending.delete(reject)
          if (answer instanceof Error) reject(answer)
          else resolve(answer)
        })
      })
    })
  }

  /** Delivers a message from a channel to which this connection is subscribed. */
  receive(channel: string, text: string): void {
    const { timeline, random, weather, trace } = this.#net
    const { process } = this.#redis
    const deliver = () => {
      trace.note(process.name, () => `hears ${text}`)
      this.#redis.emit('message', channel, text)
    }
    const later = () => timeline.at(timeline.now + random.between(0, random.pick([100, 2_000])), deliver, process)
    if (random.chance(weather.messageEcho)) later()
    if (random.chance(weather.messageLate)) later()
    else if (random.chance(weather.messageLoss)) trace.note('network', () => `loses ${text}`)
    else this.toClient.push(deliver)
  }

  /**
   * Closes the connection on the client's side. Data that the client has sent may still arrive, and the server may
   * notice only later that the connection is closed.
   */
  end(told = true): void {
    const { timeline, random, server, weather } = this.#net
    this.toClient.cut()
    const stays = random.chance(0.7) ? random.between(0, 2) : random.between(0, weather.lingers)
    if (random.chance(0.5)) this.toServer.cut()
    else this.toServer.resume()
    timeline.at(timeline.now + stays, () => {
      this.toServer.cut()
      server.forget(this)
    })
    if (!told) return
    for (const reject of this.#pending) reject(new Error('Connection is closed.'))
    this.#pending.clear()
  }
}

/** The part of an ioredis client that redis-baton uses. */
export class SimulatedRedis extends EventEmitter {
  readonly options: { readonly host: string }
  /** The parts of ioredis to which the client gives its credentials. No simulated connection has any. */
  readonly connector = { connect() {} }
  readonly duplicate = () => this
  status: 'wait' | 'connecting' | 'ready' | 'disconnecting' | 'end' = 'wait'
  readonly process: Process
  readonly #net: Net
  #session: Session | undefined
  #attempt = 0

  constructor(net: Net, process: Process) {
    super()
    this.#net = net
    this.process = process
    this.options = { host: net.host }
  }

  connect(): Promise<void> {
    const { timeline, random, weather } = this.#net
    this.status = 'connecting'
    const attempt = ++this.#attempt
    const arrive = () => {
      if (this.status !== 'connecting' || attempt !== this.#attempt) return
      const unreachable = weather.dead ?? weather.unreachable.get(this.process)
      if (unreachable === 'refused') this.#end(new Error('connect ECONNREFUSED'))
      if (unreachable) return
      this.#session = new Session(this.#net, this)
      this.status = 'ready'
      this.emit('ready')
    }
    timeline.at(timeline.now + random.between(0.2, 2 + 2 * weather.delay.most), arrive, this.process)
    return Promise.resolve()
  }

  /** Closes the socket gracefully, as ioredis does, and drops it if the other side does not answer. */
  disconnect(): void {
    if (this.status === 'end' || this.status === 'disconnecting') return
    this.status = 'disconnecting'
    const { timeline, random } = this.#net
    timeline.at(timeline.now + random.between(0.1, random.chance(0.8) ? 2 : 200), () => this.#end(), this.process)
  }

  /** Makes the socket fail. */
  break(): void {
    const { timeline, trace } = this.#net
    if (this.status !== 'ready') return
    trace.note('network', () => `cuts a connection of ${this.process.name}`)
    this.#session?.toClient.cut()
    timeline.at(timeline.now, () => this.status === 'ready' && this.#end(new Error('read ECONNRESET')), this.process)
  }

  /**
   * Ends the connection of a process that has died. The server notices this soon if the kernel closes the socket, and
   * later if the whole machine is gone.
   */
  vanish(): void {
    this.status = 'end'
    this.#session?.end(false)
    this.#session = undefined
  }

  /** Lets nothing through in these directions until `resume`, or until either side gives up the connection. */
  stall(directions: { readonly out: boolean; readonly in: boolean }): void {
    if (directions.out) this.#session?.toServer.stall()
    if (directions.in) this.#session?.toClient.stall()
  }

  resume(): void {
    if (this.#net.weather.dead) return
    this.#session?.toServer.resume()
    this.#session?.toClient.resume()
  }

  evalsha(sha: string, count: string, ...parameters: string[]): Promise<Reply> {
    const { random, weather } = this.#net
    return this.#ask(() => {
      if (random.chance(weather.noScript)) throw new ErrorReply('NOSCRIPT No matching script. Please use EVAL.')
      return this.#run(sha, Number(count), parameters)
    })
  }

  eval(lua: string, count: string, ...parameters: string[]): Promise<Reply> {
    if (lua === memoryInfo) return this.#ask(() => 'maxmemory:0')
    return this.#ask(() => this.#run(lua, Number(count), parameters))
  }

  subscribe(channel: string): Promise<unknown> {
    const session = this.#session
    return this.#ask(() => session && this.#net.server.subscribe(channel, session))
  }

  unsubscribe(channel: string): Promise<unknown> {
    const session = this.#session
    return this.#ask(() => session && this.#net.server.unsubscribe(channel, session))
  }

  publish(channel: string, text: string): Promise<number> {
    return this.#ask(() => this.#net.server.publish(channel, text))
  }

  time(): Promise<[seconds: number, micros: number]> {
    return this.#ask(() => {
      const { micros } = this.#net.server
      return [Math.floor(micros / 1e6), micros % 1e6]
    })
  }

  /** Each section has all fields. While a script runs for too long, Redis refuses INFO, too. */
  info(): Promise<string> {
    const { server, weather, replica = false } = this.#net
    return this.#ask(() => {
      const { refusal = '' } = weather
      if (refusal.startsWith('BUSY')) throw new ErrorReply(refusal)
      return server.info(refusal.startsWith('LOADING'), replica)
    })
  }

  config(_get: 'GET', name: string): Promise<string[]> {
    return this.#ask(() => [name, this.#net.server.persists ? 'always' : 'everysec'])
  }

  #run(script: string, count: number, parameters: string[]): Reply {
    const { server, weather, trace, host } = this.#net
    if (weather.refusal) throw new ErrorReply(weather.refusal)
    if (script === idleWrite) return 0
    const [keys, argv] = [parameters.slice(0, count), parameters.slice(count)]
    const known = server.scriptOf(script)
    const reply = server.run(known, keys, argv)
    trace.note(host, () => `${known.name} of ${this.process.name} (${argv.join(' ')}) → ${JSON.stringify(reply)}`)
    return reply
  }

  #ask<T>(run: () => T): Promise<T> {
    if (this.status !== 'ready' || !this.#session) return Promise.reject(new Error("Stream isn't writeable"))
    return this.#session.ask(run)
  }

  #end(error?: Error): void {
    if (this.status === 'end') return
    this.status = 'end'
    if (error) this.emit('error', error)
    this.#session?.end()
    this.#session = undefined
    this.emit('end')
  }
}

/** Returns how often the process behind the address was restarted. A replica goes on when its master restarts. */
function startsOf({ replica, server }: Net): number {
  return replica ? 0 : server.starts
}

/** Returns the result, or the server's error reply. Throws any other error, because it shows a bug in a script. */
function outcomeOf<T>(run: () => T): T | ErrorReply {
  try {
    return run()
  } catch (error) {
    if (error instanceof ErrorReply) return error
    throw error
  }
}

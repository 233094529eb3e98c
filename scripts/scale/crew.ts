/** Starts the processes that run the clients, and gives them orders. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Op, Order, Orders, Reply } from './orders.ts'

const program = fileURLToPath(new URL('clients.ts', import.meta.url))

type Terms<O extends Op> = Parameters<Orders[O]>[0]

export class Crew implements AsyncDisposable {
  readonly #members: readonly Member[]

  constructor(processes: number) {
    this.#members = Array.from({ length: processes }, () => new Member())
  }

  /** Gives all processes the same order, or each process its own. Returns the sum of their answers. */
  async ask<O extends Op>(op: O, terms: Terms<O> | ((process: number) => Terms<O>)): Promise<number> {
    const of = (i: number) => (typeof terms === 'function' ? terms(i) : terms)
    const answers = await Promise.all(this.#members.map((member, i) => member.ask({ op, ...of(i) } as Order<O>)))
    return answers.reduce((sum, answer) => sum + answer, 0)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#members.map(member => member.dismiss()))
  }
}

class Member {
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>
  /** Settles the promise of the current call of `ask`. */
  #settle: ((reply: Reply) => void) | undefined

  constructor() {
    this.#child = fork(program, { execArgv: ['--expose-gc', '--import', 'tsx'] })
    this.#child.on('message', (reply: Reply) => this.#settle?.(reply))
    this.#ended = once(this.#child, 'exit').then(() =>
      this.#settle?.({ error: 'the process of the clients has ended' }),
    )
  }

  ask(order: Order): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#settle = reply => {
        if ('error' in reply) reject(new Error(`${order.op}: ${reply.error}`))
        else resolve(reply.answer ?? 0)
      }
      this.#child.send(order)
    })
  }

  async dismiss(): Promise<void> {
    if (this.#child.connected) this.#child.disconnect()
    await this.#ended
  }
}

/** The connections of one process to one server, through a proxy. */
import { FrameProxy } from '../../kit/frame-proxy.ts'
import { Turns } from './turns.ts'

export class Line {
  readonly proxy: FrameProxy
  readonly #turns = new Turns()

  private constructor(proxy: FrameProxy) {
    this.proxy = proxy
  }

  static async open(url: string): Promise<Line> {
    return new Line(await FrameProxy.open(url))
  }

  /** The channel on which the connected process receives its grants. Undefined until that process has subscribed. */
  get inbox(): string | undefined {
    return this.proxy.channels().find(name => name.startsWith('lock:inbox:'))
  }

  /**
   * Faults of one line come one after another, because a connection that has lost bytes must be cut before the next
   * fault.
   */
  inTurn(fault: () => Promise<unknown>): Promise<unknown> {
    return this.#turns.inTurn(fault)
  }
}

/** The connections of one process to the single server that has all locks. */
import { FrameProxy } from '../../kit/frame-proxy.ts'
import type { Ways } from './post.ts'

export class OneWay implements Ways {
  readonly proxy: FrameProxy

  private constructor(proxy: FrameProxy) {
    this.proxy = proxy
  }

  static async open(url: string): Promise<OneWay> {
    return new OneWay(await FrameProxy.open(url))
  }

  get urls(): readonly string[] {
    return [this.proxy.url]
  }

  get used(): boolean {
    return this.inbox !== undefined
  }

  /** The channel on which the connected process receives its grants. Undefined until that process has subscribed. */
  get inbox(): string | undefined {
    return this.proxy.channels().find(name => name.startsWith('lock:inbox:'))
  }

  /** From now on, connects the process to another server. */
  moveTo(url: string): void {
    this.proxy.switchTo(url)
  }

  close(): Promise<void> {
    return this.proxy.close()
  }
}

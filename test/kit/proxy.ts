/** The proxy of fault-proxy.ts, closed after the test. */
import { onTestFinished } from 'vitest'
import { FaultProxy as BareProxy } from './fault-proxy.ts'

export class FaultProxy extends BareProxy {
  /** A proxy in front of `url`, closed after the test. */
  static async before(url: string): Promise<FaultProxy> {
    const proxy = new FaultProxy(Number(new URL(url).port))
    await proxy.listen()
    onTestFinished(() => proxy.close())
    return proxy
  }
}

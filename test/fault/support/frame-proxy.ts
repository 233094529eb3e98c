/** The proxy of test/kit/frame-proxy.ts, closed after the test. */
import { onTestFinished } from 'vitest'
import { FrameProxy as BareProxy } from '../../kit/frame-proxy.ts'

export type { Direction, Where } from '../../kit/frame-proxy.ts'

export class FrameProxy extends BareProxy {
  /** A proxy in front of `target`, closed after the test. */
  static async before(target: string): Promise<FrameProxy> {
    const proxy = new FrameProxy(target)
    await proxy.listen()
    onTestFinished(() => proxy.close())
    return proxy
  }
}

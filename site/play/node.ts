/**
 * Stand-ins for the few parts of Node that the client, the scripts' Redis and the Lua of the simulation use, so that
 * they run in a browser as they are. The build puts this module in the place of each `node:` module
 * (.vitepress/browser.ts).
 */
export { EventEmitter } from 'eventemitter3'

const text = { encoder: new TextEncoder(), decoder: new TextDecoder() }
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** The part of Node's `Buffer` that is used: strings as bytes, in the encodings UTF-8, latin1 and base64url. */
class Bytes extends Uint8Array {
  /** Writes one byte for each character. */
  write(source: string, at: number): void {
    for (let i = 0; i < source.length; i++) this[at + i] = source.charCodeAt(i)
  }

  override toString(encoding = 'utf8', from = 0, to = this.length): string {
    const part = this.subarray(from, to)
    if (encoding === 'utf8') return text.decoder.decode(part)
    let written = ''
    if (encoding === 'latin1') for (const byte of part) written += String.fromCharCode(byte)
    else
      for (let i = 0; i + 2 < part.length; i += 3) {
        const bits = (part[i]! << 16) | (part[i + 1]! << 8) | part[i + 2]!
        for (const shift of [18, 12, 6, 0]) written += DIGITS[(bits >> shift) & 63]
      }
    return written
  }
}

function from(source: string | ArrayBuffer, encoding?: string): Bytes {
  if (typeof source !== 'string') return new Bytes(source)
  if (encoding !== 'latin1') return new Bytes(text.encoder.encode(source))
  const bytes = new Bytes(source.length)
  bytes.write(source, 0)
  return bytes
}

Object.assign(globalThis, {
  Buffer: Object.assign(Bytes, {
    from,
    allocUnsafe: (size: number) => new Bytes(size),
    byteLength: (source: string) => text.encoder.encode(source).length,
  }),
  process: { nextTick: (run: () => void) => queueMicrotask(run), env: {}, pid: 0 },
})

/** Identifies a script by its text. Both sides compute it here, so it need not be the SHA-1 of Redis. */
export function createHash() {
  const sums = [0x811c9dc5, 0x1b873593]
  const hash = {
    update(content: string) {
      for (let i = 0; i < content.length; i++)
        for (const k of [0, 1]) sums[k] = Math.imul(sums[k]! ^ (content.charCodeAt(i) + k), 0x01000193 + 2 * k)
      return hash
    },
    digest: () => sums.map(sum => (sum >>> 0).toString(16).padStart(8, '0')).join(''),
  }
  return hash
}

export const randomFillSync = (into: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(into)

/** A context that ends with the function, and does not follow its promises: no job of the page re-enters. */
export class AsyncResource {
  runInAsyncScope<R>(fn: () => R): R {
    return fn()
  }
}

export class AsyncLocalStorage<T> {
  #store: T | undefined

  getStore(): T | undefined {
    return this.#store
  }

  run<R>(store: T, fn: () => R): R {
    const outer = this.#store
    this.#store = store
    try {
      return fn()
    } finally {
      this.#store = outer
    }
  }
}

/** The page shows no statistics. */
export const createHistogram = () => ({ count: 0, record() {} })

export const channel = () => ({ hasSubscribers: false, publish() {} })
export const subscribe = () => {}
export const unsubscribe = () => {}
export const hostname = () => 'browser'
export const uptime = () => performance.now() / 1000
export const isMainThread = true
export const setImmediate = () => new Promise<void>(resolve => setTimeout(resolve))
export const threadId = 0

/** Loads ioredis: the page has connections of its own. */
export default function none(): never {
  throw new Error('there is no ioredis in a browser')
}

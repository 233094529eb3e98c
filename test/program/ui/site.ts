/** Starts `baton ui` as a user would, and sends the requests that a browser would send. */
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import type { Frame, OpenLock, Table } from '../../../cli/ui/page/messages.ts'
import { eventually } from '../../kit/time.ts'
import { type Running, start } from '../cli/baton.ts'

export interface Site {
  /** The address that `baton ui` printed, including the secret. */
  readonly address: URL
  readonly running: Running
}

/**
 * Starts `baton ui`, and waits for its address. Without `over`, the program is killed after the test. Otherwise `over`
 * is called with a function that kills the program, and the caller must call that function.
 */
export async function openSite(
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
  over?: (end: () => void) => void,
): Promise<Site> {
  const running = start(['ui', '--interval', '200ms', ...args], env, over)
  const found = await told(() => /^(http:\S+) shows the locks at \S+/m.exec(running.output()))
  return { address: new URL(found?.[1] ?? ''), running }
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

interface Asking {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
}

/** Sends a request like `fetch`, but with control over the Host and Origin headers. */
export async function ask(url: URL, { method = 'GET', headers = {}, body }: Asking = {}): Promise<Answer> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    request(url, { method, headers, agent: false }, resolve).once('error', reject).end(body)
  })
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: await text(answer) }
}

/**
 * Waits until the check succeeds. The limit is long: on a busy machine the program reads the locks slowly, and then it
 * rests for four times as long as the reading took.
 */
export function told<T>(check: () => T | Promise<T>): Promise<T> {
  return eventually(check, 15_000)
}

/** The frames that a page has received on one stream. */
export class Stream {
  /** All received frames merged, as the page shows them. */
  now: Partial<Frame> = {}
  /** The number of received frames that contained the state of the locks. */
  pictures = 0
  readonly #heard: string[] = []
  readonly #ended = new AbortController()

  /** Follows the site's stream until the end of the test. */
  static async open(site: URL, query: Record<string, string> = {}): Promise<Stream> {
    const stream = new Stream()
    const url = new URL(`events?${new URLSearchParams(query)}`, site)
    const { body } = await fetch(url, { signal: stream.#ended.signal })
    if (!body) throw new Error('no stream came')
    stream.#read(body).catch(() => {}) // reading rejects when the connection is closed
    onTestFinished(() => stream.close())
    return stream
  }

  close(): void {
    this.#ended.abort()
  }

  /** The received frames as text. */
  get text(): string {
    return this.#heard.join('')
  }

  get table(): Table {
    return this.now.table ?? { locks: 0, matching: 0, rows: [] }
  }

  get lock(): OpenLock | undefined {
    return this.now.lock ?? undefined
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    let rest = ''
    for await (const piece of body.pipeThrough(new TextDecoderStream())) {
      this.#heard.push(piece)
      const messages = (rest + piece).split('\n\n')
      rest = messages.pop() ?? ''
      for (const message of messages) this.#take(message)
    }
  }

  #take(message: string): void {
    const data = message
      .split('\n')
      .filter(line => line.startsWith('data: '))
      .map(line => line.slice('data: '.length))
    if (data.length === 0) return
    const frame = JSON.parse(data.join('\n')) as Frame
    if (frame.trend) this.pictures += 1
    this.now = { ...this.now, ...frame }
  }
}

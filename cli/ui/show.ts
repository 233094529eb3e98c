/** Runs `baton ui`: reads all locks once, then serves the page until a signal ends the program. */
import { randomBytes } from 'node:crypto'
import type { Connected } from '../connection.ts'
import { exitCodes, Failure } from '../failure.ts'
import { survey } from '../live/watch.ts'
import { onEnding } from '../signals.ts'
import { assetsOf } from './assets.ts'
import { Audience } from './audience.ts'
import { releaseShown } from './release.ts'
import { type RunningSite, type Site, serve } from './server.ts'

export interface Showing {
  readonly prefix: string
  readonly pattern: string
  /** The port on 127.0.0.1; 0 selects a free one. */
  readonly port: number
  /** How often all locks are read from Redis, in ms. */
  readonly interval: number
  readonly allowRelease?: boolean
}

export async function show(at: Connected, options: Showing): Promise<void> {
  const { prefix, pattern, port, interval, allowRelease = false } = options
  // An invalid pattern or missing rights are reported here, in the terminal, instead of in the page.
  await survey(at, pattern)
  const audience = new Audience(at, { pattern, interval })
  const site: Site = {
    secret: randomBytes(16).toString('hex'),
    assets: await assetsOf(at.where, prefix, allowRelease),
    audience,
    ...(allowRelease && { release: request => releaseShown(at, request, console.log) }),
  }
  const running = await begin(site, port)
  try {
    console.log(
      `${running.address} shows the locks at ${at.where}${allowRelease ? '' : ', read-only'}. Ctrl-C ends the program.`,
    )
    await ended()
  } finally {
    audience.close()
    running.close()
  }
}

async function begin(site: Site, port: number): Promise<RunningSite> {
  try {
    return await serve(site, port)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const why = code === 'EADDRINUSE' ? 'another program uses it; leave --port out to get a free one' : message
    throw new Failure(`port ${port} cannot be used: ${why}`, exitCodes.unavailable)
  }
}

async function ended(): Promise<void> {
  let stop = () => {}
  await new Promise<unknown>(resolve => {
    stop = onEnding(resolve)
  })
  stop()
}

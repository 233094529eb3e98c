/**
 * The web server of `baton ui`. It shows private data, and may be allowed to take locks away. Programs of other users
 * on this machine can reach the server. Pages of other sites in the same browser can reach it, too. Each measure in
 * the left column keeps out what the right column names:
 *
 *  127.0.0.1 only                other machines
 *  a secret in the address       other users and programs of this machine, and pages that guess the address
 *  names of this machine only    a page whose host name now resolves to this machine (DNS rebinding): its requests
 *                                contain that host name
 *  POST with JSON, same origin   forms and scripts of other pages that have learned the address
 *  no CORS, no framing           pages that would read answers, or trick the user into clicking
 *  a content policy              scripts in the name of a key, in case the page ever treats a name as markup
 */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { secureHeaders } from 'hono/secure-headers'
import { streamSSE } from 'hono/streaming'
import type { Audience } from './audience.ts'
import type { ReleaseAnswer, ReleaseRequest } from './page/messages.ts'
import { lockName } from './page/name.ts'
import { viewOf } from './view.ts'

export interface Asset {
  readonly type: string
  readonly text: string
}

export interface Site {
  /** The first part of every path: letters and digits. */
  readonly secret: string
  /** The files by their names; '' is the page itself. */
  readonly assets: ReadonlyMap<string, Asset>
  readonly audience: Audience
  /** Takes the lock from this holder. Absent on a read-only page. Rejects if Redis is unreachable. */
  readonly release?: (request: ReleaseRequest) => Promise<ReleaseAnswer>
}

export interface RunningSite {
  readonly address: string
  close(): void
}

/** The largest request, in bytes. A key has at most 1,024 bytes, and JSON may need six bytes for each of them. */
const REQUEST_BYTES = 16_384
/** How long a browser that lost the connection waits before it tries again, in ms. */
const RETRY = 1_000

const policy = {
  defaultSrc: ["'none'"],
  scriptSrc: ["'self'"],
  styleSrc: ["'self'"],
  imgSrc: ["'self'"],
  connectSrc: ["'self'"],
  baseUri: ["'none'"],
  formAction: ["'none'"],
  frameAncestors: ["'none'"],
  requireTrustedTypesFor: ["'script'"],
  trustedTypes: ["'none'"],
}

/** Starts to serve. Rejects with the system's error if the port is not available. */
export async function serve(site: Site, port: number): Promise<RunningSite> {
  const server = createAdaptorServer({ fetch: application(site).fetch, overrideGlobalObjects: false })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address() as AddressInfo
  return {
    address: `http://127.0.0.1:${address.port}/${site.secret}/`,
    close() {
      server.close()
      if ('closeAllConnections' in server) server.closeAllConnections()
    },
  }
}

export function application({ secret, assets, audience, release }: Site): Hono {
  const app = new Hono()
  app.use(
    secureHeaders({
      contentSecurityPolicy: policy,
      crossOriginEmbedderPolicy: true,
      xFrameOptions: 'DENY',
      // The header Strict-Transport-Security would make the browser use TLS for all programs on this machine. This
      // server has no TLS.
      strictTransportSecurity: false,
    }),
    neverKept,
    nameOfThisMachine,
  )
  app.notFound(c => c.text('There is no page here. Open the whole address that "baton ui" printed.\n', 404))
  app.onError((error, c) => c.text(`${error.message}\n`, 500))

  for (const [name, { type, text }] of assets) {
    app.get(`/${secret}/${name}`, c => c.body(text, 200, { 'content-type': `${type}; charset=utf-8` }))
  }
  app.get(`/${secret}/events`, c => follow(c, audience))
  if (release) {
    app.post(`/${secret}/release`, sameOrigin, ofBoundedSize, async c => {
      const request = requestIn(await c.req.text())
      return request
        ? c.json(await release(request))
        : c.text('The request needs the key of a lock, and the id of the holder to take the lock from.\n', 400)
    })
  }
  return app
}

const neverKept: MiddlewareHandler = async (c, next) => {
  await next()
  c.header('Cache-Control', 'no-store')
}

/**
 * Refuses a request that reaches this server under the name of another machine. Accepts any port, because a forwarded
 * port, for instance by ssh, may have another number in the browser.
 */
const nameOfThisMachine: MiddlewareHandler = async (c, next) => {
  if (/^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/i.test(c.req.header('host') ?? '')) return next()
  return c.text(
    'This page is served only under a local name. Open the address with 127.0.0.1 or localhost as its host.\n',
    421,
  )
}

/** Browsers always send the header `Origin` with a POST. A client that is not a browser has to send it as well. */
const sameOrigin: MiddlewareHandler = async (c, next) => {
  if (c.req.header('origin') !== `http://${c.req.header('host')}`)
    return c.text('Only the page that "baton ui" serves may send this request.\n', 403)
  if (!/^application\/json\b/.test(c.req.header('content-type') ?? ''))
    return c.text('The body of the request must be JSON.\n', 415)
  return next()
}

const ofBoundedSize = bodyLimit({
  maxSize: REQUEST_BYTES,
  onError: c => c.text('The body of the request is too long.\n', 413),
})

/** Adds a viewer, and sends it messages until it leaves. */
function follow(c: Context, audience: Audience): Response {
  // The answer to a HEAD request has no body, so no viewer joins.
  if (c.req.method === 'HEAD') return c.body(null)
  const viewer = audience.join(viewOf(c.req.query()))
  // If the viewer leaves before the answer begins, only the request's signal reports this. Once the answer has begun,
  // the stream reports it.
  const { signal } = c.req.raw
  signal.addEventListener('abort', () => viewer.leave())
  if (signal.aborted) viewer.leave()
  return streamSSE(c, async stream => {
    stream.onAbort(() => viewer.leave())
    await stream.write(`retry: ${RETRY}\n\n`)
    for (let data = await viewer.next(); data !== undefined; data = await viewer.next()) await stream.writeSSE({ data })
  })
}

function requestIn(body: string): ReleaseRequest | undefined {
  try {
    const { key, kind, id } = JSON.parse(body)
    return typeof key === 'string' && typeof id === 'string' ? { ...lockName(key, kind), id } : undefined
  } catch {
    return undefined
  }
}

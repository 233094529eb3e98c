/**
 * Tests the documentation site in a real Chromium. The site is built as for publication, and its links are followed.
 */
import { readdir, readFile } from 'node:fs/promises'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ServerType, serve } from '@hono/node-server'
import { serveStatic } from '@hono/node-server/serve-static'
import { Hono } from 'hono'
import type { Browser, Page } from 'puppeteer-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { run } from '../../../local-redis/command.ts'
import { base, inside, placeOf } from '../../../site/.vitepress/places.ts'
import { launchChromium, openPage, texts } from './chromium.ts'
import { overflow } from './scene.ts'

const root = new URL('../../../', import.meta.url)
const built = new URL('site/.vitepress/dist/', root)

interface Manifest {
  readonly name: string
  readonly exports: Readonly<Record<string, unknown>>
}

let browser: Browser
let server: ServerType
let address: URL

beforeAll(async () => {
  await run('npm', ['run', '--silent', 'site'], { timeoutMs: 270_000 })
  const folder = relative(process.cwd(), fileURLToPath(built))
  const site = new Hono()
  site.use(`${base}*`, serveStatic({ root: folder, rewriteRequestPath: path => path.slice(base.length - 1) }))
  address = await new Promise<URL>(resolve => {
    server = serve({ fetch: site.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) =>
      resolve(new URL(`http://127.0.0.1:${port}${base}`)),
    )
  })
  browser = await launchChromium()
}, 300_000)

afterAll(async () => {
  await browser?.close()
  server?.close()
})

/** Returns all pages by their paths in the site, without reports of benchmarks and the page that stands for missing ones. */
async function pages(): Promise<Map<string, string>> {
  const names = await readdir(built, { recursive: true })
  const htmls = names.filter(name => name.endsWith('.html') && !/^(404\.|reports\/)/.test(name))
  return new Map(
    await Promise.all(htmls.map(async name => [name, await readFile(new URL(name, built), 'utf8')] as const)),
  )
}

test.each([
  ['', 'redis-baton'],
  ['overview.html', 'redis-baton'],
  ['guide/getting-started.html', 'Getting started'],
  ['guide/guarantees.html', 'Guarantees'],
  ['reference/redis-baton/classes/LockClient.html', 'LockClient'],
])(
  '/%s opens on a desktop and on a phone, loads nothing from elsewhere, and is no wider than its window',
  async (path, title) => {
    for (const width of [1_400, 390]) {
      const { page, complaints } = await openPage(browser, address)
      await page.setViewport({ width, height: 900 })
      await page.goto(new URL(path, address).href, { waitUntil: 'networkidle0' })
      expect((await texts(page, 'h1')).join(' ')).toContain(title)
      expect(await overflow(page)).toBe(0)
      // A picture that is embedded in the page needs no request to a server.
      expect(complaints.filter(text => !text.startsWith('request: data:'))).toEqual([])
    }
  },
)

test('each page but the first is in the sidebar, and each entry of the sidebar is a page', async () => {
  const { page } = await openPage(browser, address)
  const entries: string[] = []
  for (const part of ['overview.html', 'inside/protocol.html']) {
    await page.goto(new URL(part, address).href)
    entries.push(
      ...(await page.$$eval('.VPSidebar a', found => found.map(link => (link as { pathname: string }).pathname))),
    )
  }
  const known = entries.map(path => path.slice(base.length).replace(/\/$/, '/index.html'))
  const published = [...(await pages()).keys()].filter(name => name !== 'index.html' && name !== 'reference/index.html')
  expect(known.sort()).toEqual(published.sort())
})

test('each entry of the package is in the reference', async () => {
  const { name, exports } = JSON.parse(await readFile(new URL('package.json', root), 'utf8')) as Manifest
  const entries = Object.keys(exports).filter(path => path !== './package.json')
  const wanted = entries.map(path => `reference/${name}${path.slice(1)}/index.html`)
  expect([...(await pages()).keys()]).toEqual(expect.arrayContaining(wanted))
})

test('each link to a heading works', async () => {
  const all = await pages()
  const ids = new Map(
    [...all].map(([name, html]) => [name, new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id))]),
  )
  const broken: string[] = []
  let seen = 0
  for (const [name, html] of all) {
    const content = html.slice(html.indexOf('class="vp-doc'))
    for (const [, path, anchor] of content.matchAll(/<a [^>]*href="([^"#:]*)#([^"]+)"/g)) {
      const here = new URL(name, address)
      const target = new URL(path || here.pathname, here).pathname.slice(base.length).replace(/(^|\/)$/, '$1index.html')
      if (!ids.get(target)?.has(decodeURIComponent(anchor!))) broken.push(`${name}: ${path}#${anchor}`)
      seen += 1
    }
    for (const [url, file] of content.matchAll(
      /href="(https:\/\/github\.com\/[^/"]+\/[^/"]+\/blob\/main\/([^"#]+\.md))/g,
    )) {
      if (placeOf(file!)) broken.push(`${name}: ${url} leads out of the site`)
    }
  }
  expect(seen).toBeGreaterThan(300)
  expect(broken).toEqual([])
})

test('on no page, at no width, a table or code lies over the outline, or is cut without a sign that it scrolls', async () => {
  const { page } = await openPage(browser, address)
  const all = [...(await pages()).keys()].filter(name => !name.startsWith('reference/'))
  const wrong: string[] = []
  for (const name of all) {
    await page.goto(new URL(name, address).href)
    for (const width of [390, 768, 1_280, 1_440, 1_920]) {
      await page.setViewport({ width, height: 900 })
      const found = (await page.evaluate(boxes)) as string[]
      if ((await overflow(page)) > 0) found.push('the page itself is wider than its window')
      wrong.push(...found.map(what => `${name} at ${width}: ${what}`))
    }
  }
  expect(all.length).toBeGreaterThan(40)
  expect(wrong).toEqual([])
}, 240_000)

/** Says which tables and code lie over the outline, and which tables are cut without the shadow that says so. */
const boxes = `{
  const outline = document.querySelector('.VPDocAside')?.getBoundingClientRect()
  const edge = outline?.width > 0 ? outline.left : innerWidth
  Array.from(document.querySelectorAll('.vp-doc table, .vp-doc pre'), box => {
    const { right } = box.getBoundingClientRect()
    const { overflowX, backgroundImage } = getComputedStyle(box)
    const title = box.textContent.trim().slice(0, 30)
    if (right > edge + 1) return [title + ' reaches ' + Math.round(right - edge) + ' px too far']
    const isCut = box.scrollWidth > box.clientWidth + 1
    if (isCut && overflowX !== 'auto') return [title + ' is cut, and cannot be scrolled']
    return isCut && box.tagName === 'TABLE' && !backgroundImage.includes('gradient') ? [title + ' is cut without a sign'] : []
  }).flat()
}`

test('the first page shows the code of the README', async () => {
  const { page } = await openPage(browser, address)
  const [shown] = await texts(page, '.VPHomeHero pre code')
  const [, code] = /```ts\n(.*?)```/s.exec(await readFile(new URL('README.md', root), 'utf8'))!
  expect(shown?.trim()).toBe(code!.trim())
})

test('a function of the reference has one heading for all that it throws', async () => {
  for (const [name, html] of await pages()) {
    const headings = [...html.matchAll(/<h[2-6] id="([^"]+)"/g)].map(([, id]) => id!.replace(/-\d+$/, ''))
    const twice = headings.filter((id, i) => id === 'throws' && headings[i - 1] === id)
    expect(twice, name).toEqual([])
  }
})

test('llms.txt lists a Markdown twin of each page', async () => {
  const list = await readFile(new URL('llms.txt', built), 'utf8')
  const twins = [...list.matchAll(/\]\((\S+\.md)\)$/gm)].map(([, url]) => new URL(url!).pathname.slice(base.length))
  const names = [...(await pages()).keys()].filter(name => name !== 'index.html')
  expect(twins.sort()).toEqual(names.map(name => name.replace(/html$/, 'md')).sort())
  for (const twin of twins)
    expect(await readFile(new URL(twin, built), 'utf8'), twin).not.toMatch(/^<!-- (with|check|page):/m)
})

test.each([
  ['getting started', 'Getting started'],
  ['install', 'Getting started'],
  ['test', 'Testing your program'],
  ['mock', 'Testing your program'],
  ['error', 'Errors'],
])('the search for “%s” finds “%s” first', async (words, title) => {
  const found = await search(words)
  expect(found[0]).toContain(title)
})

test.each([
  ['tenant', 'guide/choosing'],
  ['priority', 'guide/choosing'],
  ['concurrency limit', 'guide/choosing'],
  ['cancel', 'guide/choosing'],
  ['docker', 'guide/jobs'],
  ['kubernetes', 'guide/jobs'],
  ['systemd', 'guide/jobs'],
  ['cron', 'guide/jobs'],
  ['etcd', 'guide/alternatives'],
  ['postgresql advisory', 'guide/alternatives'],
  ['temporal', 'guide/alternatives'],
  ['bullmq', 'guide/alternatives'],
  ['lambda', 'guide/serverless'],
  ['serverless', 'guide/serverless'],
  ['redlock', 'guide/migrating'],
  ['ioredis', ''],
  ['typescript', ''],
  ['wrong password', ''],
])('the search for “%s” finds a page for users first, which answers: %s', async (words, place) => {
  const [first] = await search(words, 'addresses')
  expect(first).toMatch(/^\/redis-baton\/(guide|examples|overview)/)
  expect(first!.slice(base.length)).not.toMatch(inside)
  expect(first!.slice(base.length)).toMatch(new RegExp(`^${place}`))
})

test('the search finds a heading of the guide and a name of the reference', async () => {
  const found = (await search('forceRelease')).join()
  expect(found).toContain('LockClient')
  expect(found).toContain('A job waits')
})

describe('the page to play in', () => {
  const holds = /^(\w)#\d+ holds the lock\. Queue: (\w)#/

  /** Opens the page in a window of this width. */
  async function openPlay(width: number, link = '', height = 900) {
    const { page, complaints } = await openPage(browser, address)
    await page.setViewport({ width, height })
    await page.goto(new URL(`play.html${link}`, address).href)
    await page.waitForSelector('#play .process')
    return { page, complaints }
  }

  const named = (page: Page, name: string, within = '#play') => page.waitForSelector(`${within} ::-p-aria(${name})`)

  /** Moves the slider of the speed by a key: to a standstill, or to the highest speed. */
  async function setSpeed(page: Page, key: 'Home' | 'End') {
    await (await named(page, 'Speed'))!.focus()
    await page.keyboard.press(key)
  }

  /** Waits until a line of this list matches. Returns its groups. */
  async function line(page: Page, list: string, wanted: RegExp): Promise<string[]> {
    const find = async () => (await texts(page, `#play ${list}`)).find(text => wanted.test(text))
    await expect.poll(find, { timeout: 30_000, interval: 20 }).toBeDefined()
    return [...wanted.exec((await find())!)!].slice(1)
  }

  test.each([390, 1_280, 1_920])(
    'at %i px, by keyboard: the order is fair, and after the holder was killed, the next waiter gets the lock when the lease has ended',
    async width => {
      const { page, complaints } = await openPlay(width)
      await setSpeed(page, 'End')
      const granted = async () => (await texts(page, '#play .grants li')).map(text => text[0]!).reverse()
      await expect.poll(granted, { interval: 20 }).toSatisfy((all: string[]) => all.length >= 6)
      expect('ABC'.repeat(4)).toContain((await granted()).join(''))
      await setSpeed(page, 'Home')
      await line(page, 'output', /, and stands still$/)
      const [holder, next] = await line(page, '.status', holds)
      const [left] = await line(page, '.holder', /, (\d+\.\d) s of its lease left$/)
      await (await named(page, 'Kill', `#play [aria-labelledby=process-${holder}]`))!.focus()
      await page.keyboard.press('Enter')
      const [killed] = await line(page, '.notes li', new RegExp(`^(\\d+\\.\\d+) s {2}You: kill ${holder}$`))
      await setSpeed(page, 'End')
      const grants = async () => {
        const notes = (await texts(page, '#play .notes li')).map(text => /^(\S+) s {2}(\w): acquired, .*$/.exec(text))
        return notes.filter(found => found !== null && Number(found[1]) > Number(killed)).reverse()
      }
      await expect.poll(grants, { interval: 20 }).not.toEqual([])
      const [[grant, after, who]] = (await grants()) as [RegExpExecArray]
      expect(who).toBe(next)
      // A waiter that looks again when the lease ends is told at once; another one within a heartbeat.
      expect(Number(after) - Number(killed)).toBeGreaterThan(Number(left) - 0.1)
      expect(Number(after) - Number(killed)).toBeLessThan(Number(left) + 2)
      expect(await overflow(page)).toBe(0)
      expect(complaints.filter(text => !text.startsWith('request: data:'))).toEqual([])

      // The link carries the scene: there, the same happens at the same time.
      const { page: other } = await openPlay(width, new URL(page.url()).hash)
      await line(other, '.notes li', new RegExp(`^${grant.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`))
    },
  )

  test.each(['#speed=10&acts=fly-A@0', '#%'])(
    'the link %s, which cannot be read, opens the first scene, and says so',
    async link => {
      const { page } = await openPlay(1_280, link)
      await line(page, '[role=alert]', /cannot be read/)
      await line(page, '.status', holds)
    },
  )

  test.each([
    [1_280, 900],
    [390, 844],
  ])(
    'the lock, its queue, the line of time and all processes are in the first screen at %i × %i',
    async (width, height) => {
      const { page } = await openPlay(width, '', height)
      await line(page, '.status', holds)
      const bottoms = await page.$$eval('#play :is(.lock, .queue, .line svg, .process)', found =>
        (found as unknown as readonly { getBoundingClientRect(): { bottom: number } }[]).map(
          box => box.getBoundingClientRect().bottom,
        ),
      )
      expect(bottoms).toHaveLength(6)
      expect(Math.max(...bottoms)).toBeLessThanOrEqual(height)
    },
  )

  test('each scene says what to watch, and at its end what was seen', async () => {
    const { page } = await openPlay(1_280)
    const links = await page.$$eval('#play .stories a', found => found.map(link => (link as { hash: string }).hash))
    expect(links).toHaveLength(6)
    for (const link of links) {
      await page.goto(new URL(`play.html${link.replace('speed=1', 'speed=10')}`, address).href)
      await page.waitForSelector('#play .process')
      await line(page, '.watch', /[Ww]atch/)
      await line(page, '.seen', /\w/)
    }
    await line(page, '.seen', /A’s signal aborted after/)
  }, 120_000)

  test('what it says of a cut connection and of a pause is what can be known', async () => {
    const { page } = await openPlay(1_280, '#speed=3&acts=work-2000@0,lease-6000@0,fair-A@0,fair-B@100,cut-A@1200')
    await line(page, '.process li', /^A#1 is done, but cannot say so: its lease runs for \d\.\d s more$/)
    const { page: paused } = await openPlay(
      1_280,
      '#speed=3&acts=work-2000@0,lease-6000@0,fair-A@0,fair-B@100,expire@1200',
    )
    await line(paused, '.process li', /^A#1 holds, and stands still: its lease runs for \d\.\d s more$/)
    await line(paused, '.process li', /^A#1: its lease has ended, which it cannot know before it goes on$/)
  })

  test('a hand-off is drawn from one lane to the other', async () => {
    const { page } = await openPlay(1_280)
    await line(page, '.grants li', /^B/)
    await expect.poll(() => page.$$eval('#play .line .pass', found => found.length)).toBeGreaterThan(1)
  })

  test('it weighs less than 1.5 MB, with all that it loads', async () => {
    const { page } = await openPlay(1_280)
    await line(page, '.status', holds)
    // Other pages, to which a reader may go next, do not count.
    const sizes = await page.evaluate(`{
      const next = new Set(Array.from(document.querySelectorAll('link[rel=prefetch]'), ({ href }) => href))
      const all = performance.getEntriesByType('resource').filter(({ name }) => !next.has(name))
      all.map(({ name, decodedBodySize }) => [name, decodedBodySize])
    }`)
    const all = sizes as [string, number][]
    expect(all.some(([name]) => name.endsWith('.wasm'))).toBe(true)
    expect(all.reduce((sum, [, size]) => sum + size, 0)).toBeLessThan(1.5e6)
  })
})

/** Searches the site for these words. Returns what it finds: the titles, or the addresses. */
async function search(words: string, what: 'titles' | 'addresses' = 'titles'): Promise<string[]> {
  const { page } = await openPage(browser, address)
  // The search box begins with the words that were searched for last.
  await page.evaluate(`sessionStorage.setItem('vitepress:local-search-filter', ${JSON.stringify(words)})`)
  await page.click('.VPNavBarSearch button')
  await page.waitForSelector('.VPLocalSearchBox .result', { timeout: 10_000 })
  if (what === 'titles') return texts(page, '.VPLocalSearchBox .result')
  return page.$$eval('.VPLocalSearchBox .result', found => found.map(link => (link as { pathname: string }).pathname))
}

/** Starts a real browser, Chromium, and opens web pages in it. */
import type { Browser, Page } from 'puppeteer-core'
import { launch } from 'puppeteer-core'
import { expect, onTestFinished } from 'vitest'
import which from 'which'

const names = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome']

/** Starts the Chromium of this machine. Rejects if there is none. */
export async function launchChromium(): Promise<Browser> {
  const found = await Promise.all(names.map(name => which(name, { nothrow: true })))
  const executablePath = process.env['BATON_CHROMIUM'] || found.find(path => path !== null)
  if (!executablePath) {
    throw new Error('there is no Chromium: apt-get install chromium, or name one in BATON_CHROMIUM')
  }
  // Chromium's sandbox does not work for root, which is the user in containers.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  return launch({ executablePath, args: [...args, '--disable-dev-shm-usage'] })
}

export interface Look {
  readonly width?: number
  readonly height?: number
  readonly dark?: boolean
  /** Whether animations are allowed. */
  readonly motion?: boolean
}

/** Errors of a page, one line each. */
export type Complaints = readonly string[]

/**
 * Opens an address in a window of its own, which is closed after the test. `complaints` lists errors of scripts,
 * violations of the content security policy, and requests to any other address.
 */
export async function openPage(browser: Browser, address: URL, look: Look = {}) {
  const { width = 1_400, height = 900, dark = false, motion = false } = look
  const context = await browser.createBrowserContext()
  onTestFinished(() => context.close())
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', error => complaints.push(`error: ${error}`))
  page.on('console', message => complaints.push(`console: ${message.text()}`))
  page.on('dialog', dialog => {
    complaints.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('request', request => {
    if (!request.url().startsWith(address.href)) complaints.push(`request: ${request.url()}`)
  })
  await page.setViewport({ width, height })
  await page.emulateMediaFeatures([
    { name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' },
    { name: 'prefers-reduced-motion', value: motion ? 'no-preference' : 'reduce' },
  ])
  await page.goto(address.href)
  return { page, complaints: complaints as Complaints }
}

/** Returns the text of each element that the selector finds. */
export function texts(page: Page, selector: string): Promise<string[]> {
  return page.$$eval(selector, found => found.map(element => element.textContent ?? ''))
}

/** Waits until the elements have these texts. */
export async function expectTexts(page: Page, selector: string, wanted: readonly (string | RegExp)[]): Promise<void> {
  const expected = wanted.map(text => (typeof text === 'string' ? text : expect.stringMatching(text)))
  await expect.poll(() => texts(page, selector), { timeout: 10_000, interval: 20 }).toEqual(expected)
}

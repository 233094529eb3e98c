/** Tests the page of `baton ui` in a real Chromium: what is on the screen, and how it reacts to mouse and keyboard. */
import type { Browser } from 'puppeteer-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { client, freshKey } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'
import { openSite } from '../ui/site.ts'
import { expectTexts, launchChromium, openPage, texts } from './chromium.ts'
import { held, joined, keys, overflow, queue } from './scene.ts'

let browser: Browser

beforeAll(async () => {
  browser = await launchChromium()
})

afterAll(() => browser?.close())

describe('the list', () => {
  test('follows locks as they are taken, passed on and released', async () => {
    const name = freshKey('live')
    const { address } = await openSite([`${name}*`])
    const { page, complaints } = await openPage(browser, address)
    await expectTexts(page, '#none', ['No lock is held, and nobody waits.'])

    const holder = client({ label: 'first' })
    const [lease] = await held(holder, `${name}:a`, `${name}:b`)
    await expectTexts(page, keys, [`${name}:a`, `${name}:b`])
    await expectTexts(page, '#rows .holder', ['first', 'first'])
    await page.$eval('#rows tr:nth-child(1)', row => row.setAttribute('data-mark', 'a'))

    const grants = await joined(`${name}:a`, 'second', 'third')
    await expectTexts(page, '#rows .waiters', ['2', ''])
    await expectTexts(page, '#waiters', ['2'])
    await expectTexts(page, '#rows .wait', [/^[\d.]+(ms|s)$/, ''])
    await lease!.release()
    await expectTexts(page, '#rows .holder', ['second', 'first'])
    await (await grants.get('second')!).release()
    await (await grants.get('third')!).release()
    await expectTexts(page, keys, [`${name}:b`])
    await held(holder, `${name}:0`)
    await expectTexts(page, keys, [`${name}:0`, `${name}:b`])
    // The row with `data-mark` has disappeared together with its lock. The page has not reused it for the new lock.
    expect(await page.$('[data-mark]')).toBeNull()
    await expectTexts(page, '#state', ['live'])
    expect(complaints).toEqual([])
  })

  test('is filtered by what is typed: key, holder or waiter', async () => {
    const name = freshKey('filter')
    await held(client({ label: 'Alice' }), `${name}:a`)
    await held(client({ label: 'Bob' }), `${name}:b`, `${name}:c`)
    await joined(`${name}:c`, 'Carol')
    const { address } = await openSite([`${name}*`])
    const { page, complaints } = await openPage(browser, address)
    await expectTexts(page, '#count', ['3 locks'])
    for (const [typed, found] of [
      ['bob', [`${name}:c`, `${name}:b`]],
      ['carol', [`${name}:c`]],
      [':a', [`${name}:a`]],
      ['<b>', []],
    ] as const) {
      await page.locator('#filter').fill(typed)
      await expectTexts(page, keys, found)
    }
    await expectTexts(page, '#none', ['No lock matches the filter.'])
    await expectTexts(page, '#count', ['0 of 3 locks'])
    expect(complaints).toEqual([])
  })
})

describe('one lock', () => {
  test('is opened by keyboard, shows its queue as it moves, and gives the focus back', async () => {
    const key = freshKey('open')
    const [lease] = await held(client({ label: 'the holder' }), key)
    const grants = await joined(key, 'one', 'two', 'three')
    const { address } = await openSite([`${key}*`])
    const { page, complaints } = await openPage(browser, address, { motion: true })
    await expectTexts(page, keys, [key])
    const focused = () => page.evaluate('document.activeElement.textContent')
    await page.focus('[data-order="longestWait"] button')
    await page.keyboard.press('Tab')
    expect(await focused()).toBe(key)
    await page.keyboard.press('Enter')
    await expectTexts(page, '#name', [key])
    expect(await focused()).toBe(key)
    expect(await page.evaluate('document.activeElement.id')).toBe('name')
    await expectTexts(page, queue, ['one', 'two', 'three'])
    await expectTexts(page, '#waiting td:nth-child(1)', ['1', '2', '3'])
    await expectTexts(page, '#token', [String(lease!.fencingToken)])
    await page.$eval('#waiting tr:nth-child(2)', row => row.setAttribute('data-mark', 'two'))

    await lease!.release()
    await expectTexts(page, '#holder', ['one'])
    await expectTexts(page, queue, ['two', 'three'])
    await expectTexts(page, '[data-mark] td:nth-child(2)', ['two'])
    await joined(key, 'four')
    await expectTexts(page, queue, ['two', 'three', 'four'])
    await expect.poll(() => page.$eval('#trend-one path.line', path => path.getAttribute('d'))).toMatch(/^M.*L/)

    await page.keyboard.press('Escape')
    expect(await page.$eval('#lock', panel => panel.checkVisibility())).toBe(false)
    expect(await focused()).toBe(key)
    for (const grant of grants.values()) void grant.then(each => each.release()).catch(() => {})
    expect(complaints).toEqual([])
  })

  test('stays open when it is free, and over a reload; the back button closes it', async () => {
    const key = freshKey('free')
    const [lease] = await held(client({ label: 'the holder' }), key)
    const { address } = await openSite([`${key}*`])
    const { page, complaints } = await openPage(browser, address, { width: 400, height: 800 })
    await page.locator(`${keys} button`).click()
    await expectTexts(page, '#holder', ['the holder'])
    // The window is too narrow for both the list and the lock.
    expect(await page.$eval('#list', list => list.checkVisibility())).toBe(false)
    await lease!.release()
    await expectTexts(page, '#holder', ['nobody'])
    await page.reload()
    await expectTexts(page, '#name', [key])
    await page.goBack()
    await expect.poll(() => page.$eval('#lock', panel => panel.checkVisibility())).toBe(false)
    expect(await page.$eval('#list', list => list.checkVisibility())).toBe(true)
    expect(complaints).toEqual([])
  })
})

describe('many', () => {
  test('a thousand locks with five thousand waiters: as many rows as can be read, the rest on request', async () => {
    const name = freshKey('crowd')
    const locks = client({ label: 'the holder of many' })
    const all = Array.from({ length: 1_000 }, (_, i) => `${name}:${String(i).padStart(4, '0')}`)
    await Promise.all(all.map(key => locks.lock(key)))
    const waiter = client({ label: 'one of many' })
    for (const key of all) {
      // Each of these calls rejects when its client is closed after the test. The test ignores the rejections.
      for (let i = 0; i < 5; i++) waiter.lock(key, { fair: true }).catch(() => {})
    }
    const { address } = await openSite([`${name}*`])
    const { page, complaints } = await openPage(browser, address)
    await expectTexts(page, '#waiters', ['5,000'])
    await expectTexts(page, '#count', ['1,000 locks'])
    expect(await texts(page, keys)).toEqual(all.slice(0, 100))
    for (const order of [all, all.toReversed()]) {
      await page.click('[data-order="key"] button')
      await expectTexts(page, keys, order.slice(0, 100))
    }
    await page.locator('#filter').fill(`${name}:00`)
    await expectTexts(page, '#count', ['100 of 1,000 locks'])
    await page.click('#filter', { count: 3 })
    await page.keyboard.press('Backspace')
    await page.waitForSelector('#more', { visible: true })
    await page.click('#more')
    await expect.poll(() => texts(page, keys)).toHaveLength(200)
    expect(complaints).toEqual([])
  })
})

describe('how it looks', () => {
  test.each([
    { width: 400, dark: false },
    { width: 400, dark: true },
    { width: 1_400, dark: false },
    { width: 1_400, dark: true },
  ])('nothing is cut off or out of reach at $width pixels, dark: $dark', async ({ width, dark }) => {
    const name = freshKey('look')
    const holder = client({ label: 'a-host-with-a-long-name.example.com:123456' })
    await held(holder, `${name}:orders:eu-central-1:customer:4711`, `${name}:b`)
    await joined(`${name}:b`, 'another-host-with-a-long-name.example.com:123456')
    const group = 'a-tenant-with-a-long-name.example.com'
    const jobs = client().semaphore(`${name}:jobs`, 1)
    await jobs.lock({ group })
    jobs.lock({ group, fair: true }).catch(() => {}) // this call still waits when the test ends
    const { address } = await openSite([`${name}*`])
    const { page, complaints } = await openPage(browser, address, { width, dark })
    await expect.poll(() => texts(page, keys)).toHaveLength(3)
    expect(await overflow(page)).toBe(0)
    const [background, color] = (await page.evaluate(
      '[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]',
    )) as [string, string]
    expect(brightness(background) < brightness(color)).toBe(dark)
    await page.click(`${keys} button`)
    await expectTexts(page, '#holder', ['a-host-with-a-long-name.example.com:123456'])
    expect(await overflow(page)).toBe(0)
    await page.click('#close')
    await page.click('[data-lock^=semaphore] button')
    await expectTexts(page, '#grouping td', [group, '1', '', '1', '1'])
    await expectTexts(page, ':is(#holding, #waiting) .of-group', [group, group, 'permits'])
    expect(await overflow(page)).toBe(0)
    const titles = "[...document.querySelectorAll('#groups th, #queue th')]"
    expect(await page.evaluate(`${titles}.filter(title => title.scrollWidth > title.clientWidth).length`)).toBe(0)
    expect(complaints).toEqual([])
  })
})

test('of many groups, the first are shown, then all, or those that match', async () => {
  const key = freshKey('jobs')
  const jobs = client().semaphore(key, 1)
  await jobs.lock({ group: 'tenant-0' })
  // These calls still wait when the test ends.
  for (let i = 1; i < 25; i++) jobs.lock({ group: `tenant-${i}` }).catch(() => {})
  await eventually(async () => (await jobs.inspect()).waiters.length === 24)
  const { address } = await openSite([key])
  const { page } = await openPage(browser, address)
  await page.waitForSelector('[data-lock^=semaphore] button')
  await page.click('[data-lock^=semaphore] button')
  const names = '#grouping td:first-child'
  const tenants = (count: number) => Array.from({ length: count }, (_, i) => `tenant-${i + 1}`)
  await expectTexts(page, names, tenants(20))
  await expectTexts(page, '#said', [/24 waiting; 25 groups, 0 full$/])
  await page.click('#further-groups')
  await expectTexts(page, names, [...tenants(24), 'tenant-0'])
  await page.type('#within', 'ant-24')
  await expectTexts(page, names, ['tenant-24'])
  await expectTexts(page, '#waiting .of-group', ['tenant-24', /turn|permits/])
})

function brightness(color: string): number {
  const [red = 0, green = 0, blue = 0] = (color.match(/\d+/g) ?? []).map(Number)
  return red + green + blue
}

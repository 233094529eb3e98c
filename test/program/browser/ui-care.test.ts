/** Tests the page of `baton ui` in a real Chromium: malicious names, force-releasing a lock, and lost connections. */
import type { Browser } from 'puppeteer-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { client, freshKey, ownServer, redisUrl } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'
import { openSite } from '../ui/site.ts'
import { expectTexts, launchChromium, openPage, texts } from './chromium.ts'
import { held, joined, keys, overflow, queue } from './scene.ts'

let browser: Browser

beforeAll(async () => {
  browser = await launchChromium()
})

afterAll(() => browser?.close())

describe('malicious names', () => {
  test('are shown as text, wherever they appear', async () => {
    const begin = freshKey('odd')
    const evil = [
      '<img src=x onerror="alert(1)">',
      '</script><script>alert(2)</script>',
      `"'\`><svg onload=alert(3)>`,
      '{{constructor.constructor("alert(4)")()}}',
      'javascript:alert(5)',
      '\u202egnp.\u0000\u0007\r\nend',
      `&lt;b&gt;${'w'.repeat(900)}`,
    ]
    for (const text of evil) {
      const holder = client({ label: text.slice(0, 200) })
      await holder.lock(begin + text, { owner: `owner ${text}` })
      await joined(begin + text, `waits: ${text.slice(0, 200)}`)
    }
    const { address } = await openSite([`${begin}*`, '--allow-release'])
    for (const width of [1_400, 400]) {
      const { page, complaints } = await openPage(browser, address, { width, height: 900 })
      await expect.poll(() => texts(page, keys)).toHaveLength(evil.length)
      for (const text of evil.slice(0, 5)) expect(await texts(page, keys)).toContain(begin + text)
      expect((await texts(page, keys)).join()).not.toMatch(/[\p{Cc}\p{Cf}]/u)
      expect(await overflow(page)).toBe(0)
      for (const [i, text] of evil.entries()) {
        await page.evaluate(`location.hash = ${JSON.stringify(`open=${encodeURIComponent(begin + text)}`)}`)
        await expect.poll(() => texts(page, queue).then(found => found.join())).toContain('waits: ')
        if (i < 5) await expectTexts(page, '#name', [begin + text])
        expect(await overflow(page)).toBe(0)
        await page.click('#release')
        if (i < 5) await expectTexts(page, '#taken', [begin + text])
        await page.keyboard.press('Escape')
      }
      expect(await page.$$('img, iframe, object, #rows script, #lock script, #rows svg')).toEqual([])
      expect(await page.title()).toBe(`Locks at ${new URL(redisUrl()).host}`)
      expect(complaints).toEqual([])
    }
  })
})

describe('releasing', () => {
  test('is not offered on a read-only page', async () => {
    const key = freshKey('read')
    await held(client(), key)
    const { address } = await openSite([`${key}*`])
    const { page, complaints } = await openPage(browser, address)
    await page.locator(`${keys} button`).click()
    await expectTexts(page, '#name', [key])
    expect(await page.$$('#release, dialog')).toEqual([])
    await expectTexts(page, '.place', [/read-only$/])
    expect(complaints).toEqual([])
  })

  test('asks; on no it does nothing, and on yes it takes the lock and reports that', async () => {
    const key = freshKey('<taken>')
    const [lease] = await held(client({ label: 'the holder' }), key)
    await joined(key, 'the next')
    const { address, running } = await openSite([`${key}*`, '--allow-release'])
    const { page, complaints } = await openPage(browser, address)
    await page.locator(`${keys} button`).click()
    await expectTexts(page, '#holder', ['the holder'])

    await page.locator('#release').click()
    await expectTexts(page, '#from', [/^Held by the holder for \S+. 1 waiter is in the queue.$/])
    // The preselected answer is no, so Enter only closes the dialog.
    await page.keyboard.press('Enter')
    await page.waitForSelector('dialog:not([open])')
    await page.locator('#release').click()
    await page.keyboard.press('Escape')
    await page.waitForSelector('dialog:not([open])')
    expect(await page.$eval('#lock', panel => panel.checkVisibility())).toBe(true)
    expect(lease!.signal.aborted).toBe(false)

    await page.locator('#release').click()
    await page.locator('.danger').click()
    await expectTexts(page, '#outcome', [/^The lock was released. It was held by the holder, for \S+\.$/])
    await expectTexts(page, '#holder', ['the next'])
    await eventually(() => lease!.signal.aborted)
    // The release was requested once, and only after "yes".
    expect(running.output().match(/ was released; it was held by .*/g)).toEqual([
      expect.stringMatching(/^ was released; it was held by the holder, for /),
    ])
    expect(complaints).toEqual([])
  })
})

describe('when something is gone', () => {
  test('Redis: the last picture stays, with its age and the reason, until it is live again', async () => {
    const server = await ownServer()
    const locks = client({}, server.url)
    await locks.lock('before')
    const { address } = await openSite([], { REDIS_URL: server.url })
    const { page, complaints } = await openPage(browser, address)
    await expectTexts(page, keys, ['before'])
    expect(await page.$eval('#trouble', box => box.checkVisibility())).toBe(false)
    await server.kill()
    await expectTexts(page, '#state', ['not live'])
    await expectTexts(page, '#reason', [/^Redis cannot be read: ./])
    await expectTexts(page, '#age', [/^The data shown is \d+ s old.$/])
    await expectTexts(page, keys, ['before'])
    await server.restart()
    await expectTexts(page, '#state', ['live'])
    await expectTexts(page, keys, [])
    expect(await page.$eval('#trouble', box => box.checkVisibility())).toBe(false)
    expect(complaints).toEqual([])
  })

  test('the program: the page reports it, and continues when it is back', async () => {
    const key = freshKey('gone')
    await held(client(), key)
    const { address, running } = await openSite([`${key}*`])
    const { page } = await openPage(browser, address)
    await expectTexts(page, keys, [key])
    running.child.kill('SIGSTOP')
    await expectTexts(page, '#reason', [/does not answer/])
    running.child.kill('SIGCONT')
    await expectTexts(page, '#state', ['live'])
    running.child.kill('SIGKILL')
    await expectTexts(page, '#reason', [/does not answer/])
    // The program is started again on the same port. Its new address has a different secret, so the page's address is
    // no longer valid.
    await openSite(['--port', address.port])
    await expectTexts(page, '#reason', [/This address is no longer served/])
  })
})

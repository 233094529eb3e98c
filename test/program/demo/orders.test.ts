import { describe, expect, test } from 'vitest'
import { loadOrders, normaliseCustomer, parseOrders } from '../../../cli/demo/orders.ts'
import { sale } from '../../../cli/demo/sale.ts'

describe('normaliseCustomer', () => {
  test.each([
    ['C-0042', 'as it is meant'],
    ['c-0042', 'small letter'],
    [' C-0042\t', 'white space around'],
    ['C 0042', 'a blank inside'],
    ['C_0042', 'another separator'],
    ['c0042', 'no separator'],
    ['C\u20110042', 'non-breaking hyphen'],
    ['C\u20130042', 'dash'],
    ['Ｃ－００４２', 'full-width letters and digits'],
    ['C-\u00a00042\u200b', 'invisible characters'],
  ])('%j is c0042: %s', spelling => {
    expect(normaliseCustomer(spelling)).toBe('c0042')
  })

  test('folds letters whose capital is another pair of letters', () => {
    expect(normaliseCustomer('Strauß-1')).toBe(normaliseCustomer('STRAUSS 1'))
  })

  test('joins a letter and its accent', () => {
    expect(normaliseCustomer('Re\u0301mi')).toBe(normaliseCustomer('R\u00c9MI'))
  })

  test.each([
    ['C-042', 'leading zeros count'],
    ['D-0042', 'the letter counts'],
    ['C-00421', 'every digit counts'],
  ])('%j is a different customer: %s', spelling => {
    expect(normaliseCustomer(spelling)).not.toBe('c0042')
  })
})

describe('the orders of the sale', () => {
  test('are 400 of 300 customers, for one coupon, in order of time', async () => {
    const orders = await loadOrders()
    expect(orders).toHaveLength(400)
    expect(new Set(orders.map(order => order.id)).size).toBe(400)
    expect(new Set(orders.map(order => order.customer)).size).toBe(300)
    expect(new Set(orders.map(order => order.coupon))).toEqual(new Set(['SPRING50']))
    const times = orders.map(order => Date.parse(order.placedAt))
    expect(times).toEqual(times.toSorted((a, b) => a - b))
  })

  test('have customers who try twice, three times, and with other spellings', async () => {
    const tries = new Map<string, Set<string>[]>()
    for (const { customer, spelling } of await loadOrders()) {
      tries.set(customer, [...(tries.get(customer) ?? []), new Set([spelling])])
    }
    const counts = [...tries.values()].map(list => list.length)
    expect(counts.filter(count => count === 2).length).toBe(60)
    expect(counts.filter(count => count === 3).length).toBe(20)
    const respelt = [...tries.values()].filter(list => new Set(list.flatMap(set => [...set])).size > 1)
    expect(respelt.length).toBeGreaterThan(50)
  })

  test('have second tries while there is stock; otherwise the rule would never be tested', async () => {
    const early = (await loadOrders()).slice(0, sale.stock)
    expect(early.length - new Set(early.map(order => order.customer)).size).toBeGreaterThan(5)
  })
})

describe('parseOrders', () => {
  const header = 'order_id,customer,coupon,placed_at\n'

  test('keeps the spelling and skips a byte order mark', () => {
    const [order] = parseOrders(`\ufeff${header}S-1," C-1 ",X,2026-03-14T10:00:00Z\n`)
    expect(order).toEqual({
      id: 'S-1',
      spelling: ' C-1 ',
      customer: 'c1',
      coupon: 'X',
      placedAt: '2026-03-14T10:00:00Z',
    })
  })

  test.each([
    [`${header}S-1,--,X,t\n`, /order 1: "--" has no letter or digit/],
    [`${header}S-1,C-1,X,t\nS-1,C-2,X,t\n`, /order 2: order_id "S-1" occurs twice/],
    ['order_id,coupon,placed_at\nS-1,X,t\n', /order 1: there is no column "customer"/],
  ])('refuses %j', (csv, message) => {
    expect(() => parseOrders(csv)).toThrow(message)
  })
})

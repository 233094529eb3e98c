import { describe, expect, test } from 'vitest'
import { loadOrders, normaliseCustomer, parseOrders } from '../../../cli/demo/orders.ts'
import { sale } from '../../../cli/demo/sale.ts'

describe('normaliseCustomer', () => {
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

  test('have second tries while there is stock; otherwise the rule would never be tested', async () => {
    const early = (await loadOrders()).slice(0, sale.stock)
    expect(early.length - new Set(early.map(order => order.customer)).size).toBeGreaterThan(5)
  })
})

describe('parseOrders', () => {
  const header = 'order_id,customer,coupon,placed_at\n'

  test.each([
    [`${header}S-1,--,X,t\n`, /order 1: "--" has no letter or digit/],
    [`${header}S-1,C-1,X,t\nS-1,C-2,X,t\n`, /order 2: order_id "S-1" occurs twice/],
    ['order_id,coupon,placed_at\nS-1,X,t\n', /order 1: there is no column "customer"/],
  ])('refuses %j', (csv, message) => {
    expect(() => parseOrders(csv)).toThrow(message)
  })
})

/**
 * The orders of the sale: `data/flash-sale.csv`, as a web shop would have received them.
 *
 * 400 orders of 300 customers for one coupon. Some customers try two or three times, and some spell their id
 * differently each time. So the rule "one order per customer" applies to the normalised id.
 */
import { readFile } from 'node:fs/promises'
import { parse } from 'csv-parse/sync'
import { packageRoot } from '../../local-redis/package-root.ts'

export interface Order {
  readonly id: string
  /** The customer's id as the customer typed it. */
  readonly spelling: string
  /** The normalised id, the same for every spelling. */
  readonly customer: string
  readonly coupon: string
  readonly placedAt: string
}

export const ordersFile = new URL('data/flash-sale.csv', packageRoot)

const columns = ['order_id', 'customer', 'coupon', 'placed_at'] as const

/**
 * Returns the same id for all its spellings: `C-0042`, ` c0042 `, `C 0042`, `Ｃ－００４２`.
 *
 * 1. Unicode NFKC turns full-width letters and digits, non-breaking hyphens and the like into the plain ones.
 * 2. Conversion to upper case and then to lower case makes upper and lower case equal, even for a letter whose capital
 *    is a pair of letters (`ß` and `SS`).
 * 3. All characters except letters, combining marks and digits are removed. Leading zeros stay, so `C-042` is not
 *    `C-0042`.
 */
export function normaliseCustomer(spelling: string): string {
  return spelling
    .normalize('NFKC')
    .toUpperCase()
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}]+/gu, '')
}

export function parseOrders(csv: string): Order[] {
  // Values are not trimmed here: only `normaliseCustomer` decides what counts as the same customer.
  const rows: Record<(typeof columns)[number], string>[] = parse(csv, {
    bom: true,
    columns: true,
    skip_empty_lines: true,
  })
  const seen = new Set<string>()
  return rows.map((row, index) => {
    const where = `flash-sale.csv, order ${index + 1}`
    for (const column of columns) {
      if (row[column] === undefined) throw new Error(`${where}: there is no column "${column}"`)
    }
    const customer = normaliseCustomer(row.customer)
    if (customer === '') throw new Error(`${where}: "${row.customer}" has no letter or digit to identify a customer`)
    if (seen.has(row.order_id)) throw new Error(`${where}: order_id "${row.order_id}" occurs twice`)
    seen.add(row.order_id)
    return { id: row.order_id, spelling: row.customer, customer, coupon: row.coupon, placedAt: row.placed_at }
  })
}

export async function loadOrders(): Promise<Order[]> {
  return parseOrders(await readFile(ordersFile, 'utf8'))
}

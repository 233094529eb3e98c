/**
 * The shop: stock and orders as plain Redis keys, under one prefix per run.
 *
 *  <prefix>:stock:<coupon>             how many coupons are left
 *  <prefix>:buyer:<coupon>:<customer>  the order with which this customer bought
 *  <prefix>:order:<order>              the answer that the order got
 *  <prefix>:inside:<coupon>            the mark (id) of the critical section that runs now: evidence for witness.ts
 *  <prefix>:fence:<coupon>             the newest fencing token that the shop has seen
 *
 * A worker reads stock and buyer, decides the order, and writes the new values, each with a separate command. Without
 * the lock, another process could read and write the same keys between any two of these commands.
 *
 * The shop also checks fencing tokens: it refuses a write whose token is older than one it has seen. This stops a
 * holder that was frozen until its lease had ended and still believes that it holds the lock. Each critical section
 * writes its mark before it reads anything. With this write, the shop sees the token of the section. From then on no
 * older holder can change what the section reads.
 */
import type { Redis } from 'ioredis'
import type { Order } from './orders.ts'

export type Answer = 'sold' | 'sold out' | 'has one'

export type Write = { accepted: true; previous: string | null } | { accepted: false; token: number; seen: number }

export interface Look {
  stock: number
  /** The order with which this customer has already bought. */
  bought: string | null
}

export type Shop = ReturnType<typeof openShop>

/**
 * KEYS: the fence, the key to write. ARGV: fencing token, value. Replies {1, previous value} or {0, newest token seen}.
 * Tokens are below 2^53, so Lua numbers hold them exactly.
 */
const fencedSet = `
local seen = redis.call('GET', KEYS[1])
if seen and tonumber(ARGV[1]) < tonumber(seen) then return {0, seen} end
redis.call('SET', KEYS[1], ARGV[1])
local previous = redis.call('GET', KEYS[2])
redis.call('SET', KEYS[2], ARGV[2])
return {1, previous}`

/** The commands of Redis that the shop uses. */
export interface Books {
  get(key: string): Promise<string | null>
  mget(keys: string[]): Promise<(string | null)[]>
  set(key: string, value: string | number): Promise<unknown>
  getset(key: string, value: string): Promise<string | null>
  /** Runs the script `fencedSet`. */
  fencedSet(fence: string, key: string, token: number, value: string): Promise<[accepted: number, was: string | null]>
}

export function booksIn(redis: Redis): Books {
  return {
    get: key => redis.get(key),
    mget: keys => redis.mget(keys),
    set: (key, value) => redis.set(key, value),
    getset: (key, value) => redis.getset(key, value),
    fencedSet: (...args) => redis.eval(fencedSet, 2, ...args) as Promise<[number, string | null]>,
  }
}

export function openShop(books: Books, prefix: string) {
  const stockKey = (coupon: string) => `${prefix}:stock:${coupon}`
  const orderKey = (order: string) => `${prefix}:order:${order}`

  /** Writes one value. Without a token (no lock) there is nothing to check, and the last writer wins. */
  async function write(coupon: string, token: number | null, key: string, value: string): Promise<Write> {
    if (token === null) return { accepted: true, previous: await books.getset(key, value) }
    const [accepted, was] = await books.fencedSet(`${prefix}:fence:${coupon}`, key, token, value)
    return accepted === 1 ? { accepted: true, previous: was } : { accepted: false, token, seen: Number(was) }
  }

  return {
    /**
     * Writes the id of a critical section as the mark that it is running. `previous` in the result is the mark that was
     * there before: '' or null if no section was running.
     */
    enter: (coupon: string, token: number | null, section: string) =>
      write(coupon, token, `${prefix}:inside:${coupon}`, section),

    leave: (coupon: string, token: number | null) => write(coupon, token, `${prefix}:inside:${coupon}`, ''),

    async look(coupon: string, customer: string): Promise<Look> {
      const stock = Number(await books.get(stockKey(coupon)))
      const bought = await books.get(`${prefix}:buyer:${coupon}:${customer}`)
      return { stock, bought }
    },

    /**
     * Writes the answer, and stops at the first write that is refused. A sale takes the coupon out of the stock before
     * the customer gets it. So after a crash in between, a coupon is missing, but no coupon is sold twice.
     */
    async record(order: OrderInHand, token: number | null, answer: Answer, look: Look): Promise<Write> {
      const { coupon } = order
      if (sells(answer, look)) {
        const taken = await write(coupon, token, stockKey(coupon), String(look.stock - 1))
        if (!taken.accepted) return taken
        const given = await write(coupon, token, `${prefix}:buyer:${coupon}:${order.customer}`, order.id)
        if (!given.accepted) return given
      }
      return write(coupon, token, orderKey(order.id), answer)
    },

    async open(coupon: string, stock: number): Promise<void> {
      await books.set(stockKey(coupon), stock)
    },

    /** Reads the answers of these orders, and the stock that is left. */
    async close(coupon: string, orders: readonly string[]) {
      const replies = await books.mget(orders.map(orderKey))
      const answers = new Map<string, Answer>()
      orders.forEach((order, index) => {
        const answer = replies[index]
        if (answer) answers.set(order, answer as Answer)
      })
      return { answers, stockLeft: Number(await books.get(stockKey(coupon))) }
    },
  }
}

export type OrderInHand = Pick<Order, 'id' | 'customer' | 'coupon'>

/**
 * Decides the order's answer. If the lock was lost after this order's sale was written, the order is answered 'sold'
 * again.
 */
export function decide(order: OrderInHand, look: Look): Answer {
  if (look.bought === order.id) return 'sold'
  if (look.bought !== null) return 'has one'
  return look.stock > 0 ? 'sold' : 'sold out'
}

/** Returns whether this answer takes a coupon out of the stock. */
export function sells(answer: Answer, look: Look): boolean {
  return answer === 'sold' && look.bought === null
}

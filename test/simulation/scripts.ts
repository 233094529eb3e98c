/**
 * The scripts of lua/, one function each, over the state of lock-state.ts. Each is to be read beside its Lua: the same
 * names, the same order, the same replies.
 */
import { type Host, type LockKeys, LockScript } from './lock-state.ts'

export type Args = Readonly<Record<string, string | undefined>>

export function acquire(host: Host, lock: string, keys: LockKeys, args: Args): unknown[] {
  const { id, self, tag, entry } = args as { id: string; self: string; tag: string; entry?: string }
  const [lease, ttl, headStart] = [Number(args['lease']), Number(args['ttl']), Number(args['headStart'])]
  const at = new LockScript(host, lock, keys, Number(args['memory']), args['inbox']!)
  at.readTime()
  const held = at.owner !== undefined && at.ends! >= at.now

  if (held && at.owner === self) {
    if (at.hold === id) return ['granted', String(at.token), at.ends! - at.now]
    if (at.holds === undefined || !keys.hash!.reentries.has(id)) {
      at.ends = Math.max(at.ends!, at.now + lease)
      keys.hash!.reentries.set(id, lease)
      at.set({ holds: (at.holds ?? 1) + 1, until: at.ends })
      const life = at.prolongedLife(at.ends)
      if (life !== undefined) at.set({ keep: life })
      if (entry !== undefined && at.queued !== undefined) keys.remove(entry)
      host.watcher.reentered(at, id)
    }
    return ['reentered', String(at.token), at.ends! - at.now]
  }

  const leftBehind = at.clock === 0 && keys.queue.length > 0
  if (leftBehind) at.queued = 0
  const taken = at.owner !== undefined ? 'succeeded' : 'granted'

  if (!held && at.queued === undefined) {
    at.forgetReentries()
    at.grant(id, self, tag, lease)
    return [taken, String(at.token), at.ends! - at.now]
  }

  let [ticket, position] = [0, 0]
  if (entry !== undefined) {
    ticket = at.tick() - headStart
    const joined = keys.join(ticket, entry)
    position = keys.rank(entry) + 1
    at.keepQueue(ttl, position === 1)
    if (!joined) {
      ticket = keys.ticketOf(entry)!
      keys.expire(id, at.now + ttl)
      keys.expiryLives = at.queued!
    }
    host.watcher.joined(id, ticket, lock, false)
  }

  if (!held) {
    at.forgetReentries()
    const reason = at.owner !== undefined ? 'expiry' : 'handoff'
    if (at.promote(reason, id) === undefined) at.grant(id, self, tag, lease)
    if (at.hold === id) return [taken, String(at.token), at.ends! - at.now]
    if (leftBehind && entry === undefined) at.set({ queued: at.queued })
    if (entry !== undefined) position = rankOf(keys, entry)
  }

  const heldFor = Math.max(0, at.now - Math.floor(at.token! / 1000))
  const clock = String(Math.max(at.clock, at.micros))
  return ['refused', at.ends! - at.now, position, String(ticket), at.label, heldFor, clock]
}

export function release(host: Host, lock: string, keys: LockKeys, args: Args): unknown[] {
  const client = args['client']!
  const at = new LockScript(host, lock, keys, Number(args['memory']), args['inbox']!)
  const { dropped, successor } = at.drop(args['id']!, client)
  if (!dropped) return ['ended']
  if (successor?.startsWith(client)) return ['passed', successor, String(at.token), at.ends! - at.now]
  return ['released']
}

export function leave(host: Host, lock: string, keys: LockKeys, args: Args): unknown[] {
  const { id, entry } = args as { id: string; entry?: string }
  const at = new LockScript(host, lock, keys, Number(args['memory']), args['inbox']!)
  let wasQueued = false
  if (entry !== undefined) {
    keys.expiry.delete(id)
    wasQueued = keys.remove(entry)
    host.watcher.left(id)
  }
  if (at.drop(id).dropped) return ['returned']
  return [wasQueued ? 'left' : 'absent']
}

/** The part of lua/renew.lua that is for one hold. Null: it is gone. */
export function renewOne(host: Host, lock: string, keys: LockKeys, memory: number, id: string, lease: number) {
  const at = new LockScript(host, lock, keys, memory, '')
  at.readTime()
  const known = at.hold === id || keys.hash?.reentries.has(id)
  if (!known || at.ends === undefined || at.ends < at.now) return null
  if (at.ends >= at.now + lease) return at.ends - at.now
  at.prolongedLife(at.now + lease)
  at.set({ until: at.now + lease, keep: at.keep })
  return lease
}

export function tend(host: Host, lock: string, keys: LockKeys, args: Args, waiters: readonly string[]): unknown[] {
  const ttl = Number(args['ttl'])
  const at = new LockScript(host, lock, keys, Number(args['memory']), args['inbox']!)
  at.readTime()
  for (const [id, deadline] of keys.expiry) if (deadline < at.now) keys.expiry.delete(id)

  let joins = 0
  for (let i = 0; i < waiters.length; i += 3) {
    const [id, entry, ticket] = [waiters[i]!, waiters[i + 1]!, Number(waiters[i + 2])]
    if (at.hold === id && at.ends! >= at.now) continue
    joins += 1
    keys.join(ticket, entry)
    keys.expire(id, at.now + ttl)
    at.clock = Math.max(at.clock, ticket)
    host.watcher.joined(id, ticket, lock, true)
  }
  if (joins > 0) {
    at.keepQueue(ttl, true)
    keys.expiryLives = at.queued!
  }

  let how = 'handoff'
  if (at.queued !== undefined && !(at.owner !== undefined && at.ends! >= at.now)) {
    at.forgetReentries()
    how = at.owner !== undefined ? 'expiry' : 'handoff'
    at.promote(how, waiters[0]!.slice(0, 12))
  }

  const heldFor = Math.max(0, at.now - Math.floor(at.token! / 1000))
  const reply: unknown[] = ['tended', at.ends! - at.now, at.label, heldFor, String(Math.max(at.clock, at.micros))]
  for (let i = 0; i < waiters.length; i += 3) {
    if (at.hold === waiters[i]) reply.push([String(at.token), at.ends! - at.now, how])
    else reply.push(rankOf(keys, waiters[i + 1]!))
  }
  return reply
}

export function forceRelease(host: Host, lock: string, keys: LockKeys, args: Args): unknown[] {
  const seen = args['seen']!
  const at = new LockScript(host, lock, keys, Number(args['memory']), args['inbox']!)
  at.readTime()
  if (at.owner === undefined || String(at.token) !== seen || at.ends! < at.now) return ['changed']
  const lost = [
    ...(at.hold === undefined ? [] : [at.hold]),
    ...(at.holds === undefined ? [] : keys.hash!.reentries.keys()),
  ]
  host.watcher.taken(lost)
  at.open()
  for (const id of lost) host.publish(at.inbox + id.slice(0, 12), `lost ${id} ${seen} ${lock}`)
  return ['released']
}

export function inspect(host: Host, keys: LockKeys, args: Args): unknown[] {
  keys.dropExpired(Math.floor(host.micros / 1000))
  const { hash } = keys
  const { owner, label, token, until, hold, holds } = hash ?? {}
  const fields = [owner, label, token, until, hold, holds].map(value => (value === undefined ? null : String(value)))
  const full = args['queued'] !== undefined
  const queue = full ? keys.queue.flatMap(({ entry, ticket }) => [entry, String(ticket)]) : []
  const expiry = full ? [...keys.expiry].flatMap(([id, deadline]) => [id, String(deadline)]) : []
  return ['state', String(host.micros), fields, queue, expiry]
}

/** ZRANK + 1; in Lua an absent entry breaks the script here. */
function rankOf(keys: LockKeys, entry: string): number {
  const rank = keys.rank(entry)
  if (rank < 0) throw new Error('ERR attempt to perform arithmetic on a boolean value')
  return rank + 1
}

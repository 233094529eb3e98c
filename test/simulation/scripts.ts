/**
 * The scripts of lua/, one function each, over the state of lock-state.ts. Each is to be read beside its Lua: the same
 * names, the same order, the same replies.
 */
import { firstHold, type Host, type LockKeys, LockScript, parseClaim } from './lock-state.ts'

export type Args = Readonly<Record<string, string | undefined>>

/** What a client gets: a text, or a list that begins with the status word. */
export type Reply = string | unknown[]

export function acquire(host: Host, lock: string, keys: LockKeys, args: Args): Reply {
  const { claim, mode } = args as { claim: string; mode?: string }
  const [lease, queue] = [Number(args['lease']), mode === 'queue']
  const block = mode === undefined || queue ? undefined : Number(mode)
  const at = new LockScript(host, lock, keys, Number(args['memory']), args['inbox']!)
  at.readTime()

  if (!at.holder && at.queued === undefined && at.clock > 0) {
    at.grant(claim, lease, at.tick(), block)
    return `granted ${at.token} ${lease}${reservedOf(block)}`
  }

  const { id, owner: self, ttl, headStart } = parseClaim(claim)
  const { held } = at
  if (held && at.hold === id) return `granted ${at.token} ${at.ends! - at.now}`
  if (held && self !== id) {
    const { owner } = parseClaim(at.holder!.claim)
    const ours = at.hold!.slice(0, 12)
    if (self === owner && (id.startsWith(ours) || !owner.startsWith(ours))) {
      if (at.holds === undefined || !keys.hash!.reentries.has(id)) {
        at.ends = Math.max(at.ends!, at.now + lease)
        keys.hash!.reentries.set(id, lease)
        at.set({ holds: (at.holds ?? 1) + 1, holder: { ...at.holder!, until: at.ends } })
        const life = at.prolongedLife(at.ends)
        if (life !== undefined) at.set({ keep: life })
        if (queue && at.queued !== undefined) keys.remove(claim)
        host.watcher.reentered(at, id)
      }
      return `reentered ${at.token} ${at.ends! - at.now}`
    }
  }

  const leftBehind = at.clock === 0 && keys.queue.length > 0
  if (leftBehind) at.queued = 0

  let [ticket, position] = [0, 0]
  if (queue && (held || at.queued !== undefined)) {
    ticket = at.tick() - headStart
    const joined = keys.join(ticket, claim)
    position = keys.rank(claim) + 1
    at.keepQueue(ttl, position === 1)
    if (!joined) {
      ticket = keys.ticketOf(claim)!
      keys.expire(id, at.now + ttl)
      keys.expiryLives = at.queued!
    }
    host.watcher.joined(id, ticket, lock, false)
  }

  if (!held) {
    const taken = at.holder ? 'succeeded' : 'granted'
    let reserved = ''
    at.forgetReentries()
    const promoted = at.queued !== undefined && at.promote(at.holder ? 'expiry' : 'handoff', id) !== undefined
    if (!promoted) {
      at.grant(claim, lease, at.tick(), block)
      reserved = reservedOf(block)
    }
    if (at.hold === id) return `${taken} ${at.token} ${at.ends! - at.now}${reserved}`
    if (leftBehind && !queue) at.set({ queued: at.queued })
    if (queue) position = rankOf(keys, claim)
  }

  const heldFor = Math.max(0, at.now - Math.floor(at.token! / 1000))
  const clock = Math.max(at.token!, at.micros)
  const { label } = parseClaim(at.holder!.claim)
  return `refused ${at.ends! - at.now} ${position} ${ticket} ${heldFor} ${clock} ${label}`
}

export function release(host: Host, lock: string, keys: LockKeys, args: Args): Reply {
  const { id, used, reserved } = args as { id: string; used?: string; reserved?: string }
  const client = id.slice(0, 12)
  const at = new LockScript(host, lock, keys, Number(args['memory']), args['inbox']!)
  const alone = at.queued === undefined && at.holds === undefined && at.hold === id
  if (alone && used !== undefined && at.clock === Number(reserved)) at.set({ clock: Number(used) })
  at.readTime()
  const { dropped, successor, heard } = at.drop(id, client)
  if (!dropped) return 'ended'
  if (successor?.startsWith(client)) return `passed ${successor} ${at.token} ${at.ends! - at.now}`
  return `released ${heard ?? 0}`
}

export function pass(host: Host, lock: string, keys: LockKeys, args: Args): Reply {
  const { id, claim } = args as { id: string; claim: string }
  const [issued, lease] = [Number(args['issued']), Number(args['lease'])]
  const at = new LockScript(host, lock, keys, Number(args['memory']), '')
  at.readTime()
  if (!at.held || at.hold !== id) return 'gone'
  if (issued > at.token!) {
    at.ends = Math.max(at.ends!, at.now + lease)
    at.prolongedLife(at.ends)
    at.token = issued
    at.set({ holder: { token: issued, until: at.ends, claim }, keep: at.keep })
    host.watcher.passed(at, parseClaim(claim))
  }
  return `recorded ${at.ends! - at.now} ${at.queued === undefined ? 0 : 1}`
}

export function leave(host: Host, lock: string, keys: LockKeys, args: Args): Reply {
  const { id, entry } = args as { id: string; entry?: string }
  const at = new LockScript(host, lock, keys, Number(args['memory']), args['inbox']!)
  let wasQueued = false
  if (entry !== undefined) {
    keys.expiry.delete(id)
    wasQueued = keys.remove(entry)
    host.watcher.left(id)
  }
  at.readTime()
  if (at.drop(id).dropped) return 'returned'
  return wasQueued ? 'left' : 'absent'
}

/** The part of lua/renew.lua that is for one hold. Null: it is gone; -1: granted anew. */
export function renewOne(host: Host, lock: string, keys: LockKeys, memory: number, asked: readonly string[]) {
  const [id, known, lease] = [asked[0]!, Number(asked[1]), Number(asked[2])]
  const at = new LockScript(host, lock, keys, memory, '')
  at.readTime()
  const ours = at.hold === id || keys.hash?.reentries.has(id)
  if (!ours || !at.held) return null
  if (at.token! > known) return -1
  if (at.ends! >= at.now + lease) return at.ends! - at.now
  at.prolongedLife(at.now + lease)
  at.set({ holder: { ...at.holder!, until: at.now + lease }, keep: at.keep })
  return lease
}

export function tend(host: Host, lock: string, keys: LockKeys, args: Args, waiters: readonly string[]): Reply {
  const ttl = Number(args['ttl'])
  const at = new LockScript(host, lock, keys, Number(args['memory']), args['inbox']!)
  at.readTime()
  for (const [id, deadline] of keys.expiry) if (deadline < at.now) keys.expiry.delete(id)

  let joins = 0
  for (let i = 0; i < waiters.length; i += 2) {
    const [claim, ticket] = [waiters[i]!, Number(waiters[i + 1])]
    const id = claim.slice(0, 28)
    if (at.hold === id && at.held) continue
    joins += 1
    keys.join(ticket, claim)
    keys.expire(id, at.now + ttl)
    at.clock = Math.max(at.clock, ticket)
    host.watcher.joined(id, ticket, lock, true)
  }
  if (joins > 0) {
    at.keepQueue(ttl, true)
    keys.expiryLives = at.queued!
  }

  let how = 'handoff'
  if (at.queued !== undefined && !at.held) {
    at.forgetReentries()
    how = at.holder ? 'expiry' : 'handoff'
    at.promote(how, waiters[0]!.slice(0, 12))
  }

  const heldFor = Math.max(0, at.now - Math.floor(at.token! / 1000))
  const { label } = parseClaim(at.holder!.claim)
  const reply: unknown[] = ['tended', at.ends! - at.now, label, heldFor, String(Math.max(at.clock, at.micros))]
  for (let i = 0; i < waiters.length; i += 2) {
    if (at.hold === waiters[i]!.slice(0, 28)) reply.push([String(at.token), at.ends! - at.now, how])
    else reply.push(rankOf(keys, waiters[i]!))
  }
  return reply
}

export function forceRelease(host: Host, lock: string, keys: LockKeys, args: Args): Reply {
  const seen = args['seen']!
  const at = new LockScript(host, lock, keys, Number(args['memory']), args['inbox']!)
  at.readTime()
  if (!at.held || String(at.token) !== seen) return 'changed'
  const lost = [...firstHold(at.holder!.claim), ...(at.holds === undefined ? [] : keys.hash!.reentries.keys())]
  host.watcher.taken(lost)
  at.open()
  for (const id of lost) host.publish(at.inbox + id.slice(0, 12), `lost ${id} ${seen} ${lock}`)
  return 'released'
}

export function inspect(host: Host, keys: LockKeys, args: Args): Reply {
  keys.dropExpired(Math.floor(host.micros / 1000))
  const { holder, holds } = keys.hash ?? {}
  const text = holder ? `${holder.token} ${holder.until} ${holder.claim}` : null
  const full = args['queued'] !== undefined
  const queue = full ? keys.queue.flatMap(({ entry, ticket }) => [entry, String(ticket)]) : []
  const expiry = full ? [...keys.expiry].flatMap(([id, deadline]) => [id, String(deadline)]) : []
  return ['state', String(host.micros), text, holds === undefined ? null : String(holds), queue, expiry]
}

/** Tokens that a grant has reserved behind its own, as a reply says it. */
function reservedOf(block: number | undefined): string {
  return block === undefined ? '' : ` ${block}`
}

/** ZRANK + 1; in Lua an absent entry breaks the script here. */
function rankOf(keys: LockKeys, entry: string): number {
  const rank = keys.rank(entry)
  if (rank < 0) throw new Error('ERR attempt to perform arithmetic on a boolean value')
  return rank + 1
}

/**
 * Defines the steps in the life of a lock. Each step has its own lock, so that one fault can hit all steps at once.
 * `prepare` brings the lock to the point where the step begins. `prepare` returns a function that takes the step and
 * checks its consequences.
 */
import { expect } from 'vitest'
import { type Lease, type LockOptions, LockTimeoutError } from '../../../src/index.ts'
import type { RecordedClient } from '../../history/recorded.ts'
import { rejection, within } from '../../kit/outcomes.ts'
import type { QuorumScene } from '../../kit/quorum-scene.ts'
import type { Random } from '../../kit/random.ts'
import { sleep } from '../../kit/time.ts'

/**
 * The time within which every call must settle while a majority is up, in ms: two heartbeats, and a margin for a slow
 * machine.
 */
const LIMIT = 4_000

export class Stage {
  readonly scene: QuorumScene
  readonly clients: readonly [RecordedClient, RecordedClient, RecordedClient]
  readonly key: string
  readonly #random: Random

  constructor(scene: QuorumScene, clients: Stage['clients'], key: string, random: Random) {
    this.scene = scene
    this.clients = clients
    this.key = key
    this.#random = random
  }

  lock(client: RecordedClient, options: LockOptions = {}): Promise<Lease> {
    return client.lock(this.key, { fairAfter: Number.POSITIVE_INFINITY, ...options })
  }

  /** Waits until the call is granted, holds the lock for a moment, and releases it. */
  async visit(client: RecordedClient, call: Promise<Lease>, what: string): Promise<Lease> {
    const lease = await within(LIMIT, call, `${what}: granted`)
    await sleep(this.#random.between(0, 40))
    await this.release(client, lease, what)
    return lease
  }

  async release(client: RecordedClient, lease: Lease, what: string): Promise<void> {
    expect(lease.held, `${what}: held until it is released`).toBe(true)
    expect(await within(LIMIT, client.release(lease), `${what}: released`), `${what}: had it`).toBe(true)
  }

  /** Takes the lock, and waits until all servers have the hold. */
  async held(options: LockOptions = {}): Promise<Lease> {
    const lease = await this.lock(this.clients[0], options)
    await this.scene.heldEverywhere(this.key, lease.id)
    return lease
  }

  /** Queues one more waiter, and waits until each server has `waiters` waiters, including this one. */
  async queued(client: RecordedClient, waiters: number): Promise<{ call: Promise<Lease> }> {
    const call = this.lock(client, { fair: true })
    // The test handles this promise later. Until then, a rejection must not count as unhandled.
    call.catch(() => {})
    await this.scene.queuedEverywhere(this.key, waiters)
    return { call }
  }
}

export interface Story {
  readonly name: string
  /**
   * True for a step in which several callers request the lock at once. One of them may be granted the lock by a bare
   * majority of the servers. If the clock of one of these servers is set ahead, the hold may end early. So this step is
   * not combined with clock faults.
   */
  readonly contended?: true
  prepare(stage: Stage): Promise<() => Promise<void>>
}

const acquire = (fair: boolean): Story => ({
  name: `acquire (fair: ${fair})`,
  async prepare(stage) {
    const [, one, two] = stage.clients
    return async () => {
      const first = await stage.visit(one, stage.lock(one, { fair }), 'acquire')
      const second = await stage.visit(two, stage.lock(two, { fair }), 'acquire, then')
      expect(second.fencingToken).toBeGreaterThan(first.fencingToken)
    }
  },
})

const compete = (fair: boolean): Story => ({
  name: `acquire, three at once (fair: ${fair})`,
  contended: true,
  async prepare(stage) {
    return async () => {
      await Promise.all(stage.clients.map(each => stage.visit(each, stage.lock(each, { fair }), 'compete')))
    }
  },
})

const join: Story = {
  name: 'join the queue',
  async prepare(stage) {
    const [holder, one] = stage.clients
    const held = await stage.held()
    return async () => {
      const call = stage.lock(one, { fair: true })
      call.catch(() => {})
      await sleep(100)
      await stage.release(holder, held, 'hold while others queue')
      const next = await stage.visit(one, call, 'queue')
      expect(next.fencingToken).toBeGreaterThan(held.fencingToken)
    }
  },
}

const handOff: Story = {
  name: 'hand-off by the queue',
  async prepare(stage) {
    const [holder, one, two] = stage.clients
    const held = await stage.held()
    const first = await stage.queued(one, 1)
    const second = await stage.queued(two, 2)
    return async () => {
      await stage.release(holder, held, 'hand off')
      const [a, b] = await Promise.all([
        stage.visit(one, first.call, 'first in the queue'),
        stage.visit(two, second.call, 'second in the queue'),
      ])
      expect(a.fencingToken, 'after the holder before').toBeGreaterThan(held.fencingToken)
      expect(b.fencingToken, 'in their order').toBeGreaterThan(a.fencingToken)
    }
  },
}

const wakeUp: Story = {
  name: 'wake-up of an unfair waiter',
  async prepare(stage) {
    const [holder, one] = stage.clients
    const held = await stage.held()
    const call = stage.lock(one)
    call.catch(() => {})
    // Wait until the call has been refused, and its client listens for the message that wakes it.
    await sleep(100)
    return async () => {
      await stage.release(holder, held, 'release')
      const next = await stage.visit(one, call, 'woken')
      expect(next.fencingToken).toBeGreaterThan(held.fencingToken)
    }
  },
}

const renewal: Story = {
  name: 'renewal',
  async prepare(stage) {
    const [holder, , other] = stage.clients
    const held = await stage.held({ lease: 3_000, renew: true })
    return async () => {
      await within(LIMIT, held.renew(), 'renewed')
      // The loop takes longer than the lease, so the hold lasts only if it is renewed.
      for (let i = 0; i < 4; i++) {
        await sleep(800)
        expect(held.held, 'held while it is renewed').toBe(true)
        await rejection(other.lock(stage.key, { timeout: 0 }), LockTimeoutError)
      }
      await stage.release(holder, held, 'hold by renewals')
    }
  },
}

const release: Story = {
  name: 'release',
  async prepare(stage) {
    const [holder, one] = stage.clients
    const held = await stage.held()
    return async () => {
      await stage.release(holder, held, 'release')
      const next = await stage.visit(one, stage.lock(one), 'acquire after a release')
      expect(next.fencingToken).toBeGreaterThan(held.fencingToken)
    }
  },
}

export const stories: readonly Story[] = [
  acquire(false),
  acquire(true),
  compete(false),
  compete(true),
  join,
  handOff,
  wakeUp,
  renewal,
  release,
]

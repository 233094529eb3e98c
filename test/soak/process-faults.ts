/** Faults of one process, and of the way between it and the server: each begins, lasts, and is healed. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Reach } from '../history/events.ts'
import { areMessages } from './frames.ts'
import type { ProcessFault } from './plan.ts'
import type { Post } from './post.ts'

type Fault = (post: Post, duration: number) => Promise<void>

export const processFaults: Readonly<Record<ProcessFault, { readonly reach: Reach; readonly run: Fault }>> = {
  kill: { reach: 'worker', run: post => post.replace() },
  freeze: {
    reach: 'worker',
    async run(post, duration) {
      post.signal('SIGSTOP')
      await sleep(duration)
      post.signal('SIGCONT')
    },
  },
  block: {
    reach: 'worker',
    async run(post, duration) {
      post.tell({ block: duration })
      await sleep(duration)
    },
  },
  cut: {
    reach: 'worker',
    async run(post) {
      post.proxy.cut()
    },
  },
  refuse: {
    reach: 'worker',
    async run(post, duration) {
      post.proxy.refuse()
      post.proxy.cut()
      await sleep(duration)
      post.proxy.accept()
    },
  },
  'half-open up': { reach: 'worker', run: (post, duration) => halfOpen(post, duration, 'up') },
  'half-open down': { reach: 'worker', run: (post, duration) => halfOpen(post, duration, 'down') },
  /** The server has done what it was asked, and nobody hears of it. */
  'lose replies': { reach: 'worker', run: (post, duration) => halfOpen(post, duration, 'down') },
  hold: {
    reach: 'worker',
    async run(post, duration) {
      post.proxy.hold(duration % 2 === 0 ? 'up' : 'down')
      await sleep(duration)
      post.proxy.heal()
    },
  },
  delay: {
    reach: 'worker',
    async run(post, duration) {
      post.proxy.delay(duration % 150)
      await sleep(duration)
      post.proxy.heal()
    },
  },
  'drop messages': {
    reach: 'worker',
    async run(post, duration) {
      post.proxy.filter((direction, data) => (direction === 'down' && areMessages(data) ? undefined : data))
      await sleep(duration)
      post.proxy.heal()
    },
  },
  'double messages': {
    reach: 'nothing',
    async run(post, duration) {
      post.proxy.filter((direction, data) =>
        direction === 'down' && areMessages(data) ? Buffer.concat([data, data]) : data,
      )
      await sleep(duration)
      post.proxy.heal()
    },
  },
}

/** A connection that has lost bytes never carries any again: it is cut, as a real one would be, before the way is open. */
async function halfOpen(post: Post, duration: number, direction: 'up' | 'down'): Promise<void> {
  post.proxy.swallow(direction)
  await sleep(duration)
  post.proxy.cut()
  post.proxy.heal()
}

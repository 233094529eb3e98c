/** Faults of a process itself, and not of its connections to the servers. */
import { setTimeout as sleep } from 'node:timers/promises'
import { now } from '../recorder.ts'
import type { Fault } from './fault.ts'
import type { Post } from './post.ts'

const DAY = 86_400_000

export const workerFaults = {
  kill: { reach: 'worker', run: (_, __, post) => post.replace() },
  freeze: {
    reach: 'worker',
    async run(_, { duration }, post) {
      post.signal('SIGSTOP')
      await sleep(duration)
      post.signal('SIGCONT')
    },
  },
  block: {
    reach: 'worker',
    async run(_, { duration }, post) {
      post.tell({ block: duration })
      await sleep(duration)
    },
  },
  /**
   * Until the fault ends, steps the process's time of day every 20 ms: away from the true time, or back to it.
   * redis-baton must not depend on the time of day.
   */
  'wall clock': {
    reach: 'nothing',
    async run(_, { duration, dice }, post) {
      let jump = dice % 2 === 0 ? DAY : -(1 + (dice % 60_000))
      for (const end = now() + duration; now() < end; jump = -jump) {
        post.tell({ jump })
        await sleep(20)
      }
    },
  },
} satisfies Record<string, Fault<[post: Post], unknown>>

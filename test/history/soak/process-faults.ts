/** Faults of a process itself, and not of its lines to the servers. */
import { setTimeout as sleep } from 'node:timers/promises'
import { now } from '../recorder.ts'
import type { Faults } from './fault.ts'
import type { Post } from './post.ts'

const DAY = 86_400_000

export const processFaults: Faults<Post> = {
  kill: { weight: 6, run: (_, post) => post.replace() },
  freeze: {
    weight: 8,
    longest: 4_500,
    async run(_, post, { duration }) {
      post.signal('SIGSTOP')
      await sleep(duration)
      post.signal('SIGCONT')
    },
  },
  block: {
    weight: 5,
    longest: 3_500,
    async run(_, post, { duration }) {
      post.tell({ block: duration })
      await sleep(duration)
    },
  },
  /**
   * Until the fault ends, steps the process's time of day every 20 ms: away from the true time, or back to it.
   * redis-baton must not depend on the time of day.
   */
  'wall clock': {
    weight: 4,
    longest: 2_500,
    reach: 'nothing',
    async run(_, post, { duration, dice }) {
      let jump = dice % 2 === 0 ? DAY : -(1 + (dice % 60_000))
      for (const end = now() + duration; now() < end; jump = -jump) {
        post.tell({ jump })
        await sleep(20)
      }
    },
  },
}

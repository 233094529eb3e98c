/** Faults of one of several servers. Each of them persists every write. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Fault, Faults } from './fault.ts'
import { lineFaults } from './line-faults.ts'
import { forgetting } from './losses.ts'
import type { Server } from './server.ts'
import { killClients } from './server-faults.ts'
import { STANDING } from './terms.ts'

export const memberFaults: Faults<Server> = {
  restart: {
    weight: 6,
    longest: 1_500,
    ofMajority: true,
    async run(_, server, { duration }) {
      await server.kill()
      await sleep(duration)
      await server.comeBack()
    },
  },
  'restart empty': {
    weight: 6,
    longest: 600,
    ofMajority: true,
    async run(stage, server, { duration, all }) {
      await forgetting(stage, all, () => server.kill())
      await sleep(duration)
      await server.comeBackEmpty(stage.emptied)
      await sleep(STANDING)
      await server.persist()
    },
  },
  stop: {
    weight: 6,
    longest: 2_500,
    ofMajority: true,
    async run(_, server, { duration }) {
      server.stop()
      await sleep(duration)
      server.goOn()
    },
  },
  'client kill': {
    weight: 5,
    run: (_, server, { dice }) =>
      killClients(server, ...([['normal'], ['pubsub'], ['normal', 'pubsub']][dice % 3] as string[])),
  },
  'cut off': { weight: 4, longest: 2_500, ofMajority: true, run: onAllLines('partition') },
  'cut off up': { weight: 4, longest: 2_500, run: onAllLines('half-open up') },
  'cut off down': { weight: 4, longest: 2_500, run: onAllLines('half-open down') },
  slow: { weight: 5, longest: 2_500, run: onAllLines('delay') },
  late: { weight: 4, longest: 2_000, run: onAllLines('hold') },
}

function onAllLines(name: keyof typeof lineFaults): Fault<Server>['run'] {
  return async (stage, { number }, choices) => {
    const lines = stage.posts.map(post => post.lines[number]!)
    await Promise.all(lines.map(line => line.inTurn(() => lineFaults[name].run(stage, line, choices))))
  }
}

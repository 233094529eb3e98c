/**
 * Tests every kind of fault on one of three servers. Every step in the life of a lock is taken shortly before or after
 * the fault begins.
 */
import { afterAll, afterEach, beforeAll, test } from 'vitest'
import { forgetful, QuorumScene } from '../../kit/quorum-scene.ts'
import { faults } from './faults.ts'
import { trial } from './trial.ts'

let lasting: QuorumScene
let forgetting: QuorumScene
beforeAll(async () => {
  forgetting = await QuorumScene.start({ servers: 3, args: forgetful })
  lasting = await QuorumScene.start({ servers: 3, stepped: true })
})
afterEach(() => lasting.mend())
afterAll(() => Promise.all([lasting.stop(), forgetting.stop()]))

// This test fails if `this.majority = Math.floor(sources.length / 2) + 1` becomes `this.majority = sources.length` in
// src/compose/quorum/backend.ts: the votes of all servers are needed (I4). It also fails if `this.majority =
// Math.floor(sources.length / 2) + 1` becomes `this.majority = 1` in src/compose/quorum/backend.ts: one server's vote is
// enough (I1). It also fails if `(a, b) => b - a)[majority - 1]` becomes `(a, b) => a - b)[0]` in
// src/compose/quorum/round.ts: a hold ends as soon as its lease has ended on one server (I8).
test.each(faults)('I1 I2 I4 I6 I7 I8: one of three servers: $name', fault =>
  trial(fault.forgets ? forgetting : lasting, fault),
)

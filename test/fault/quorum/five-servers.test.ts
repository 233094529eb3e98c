/**
 * Tests every kind of fault on two of five servers. Each fault begins shortly before or after each step in the life of
 * a lock.
 */
import { afterAll, afterEach, beforeAll, test } from 'vitest'
import { forgetful, QuorumScene } from '../../kit/quorum-scene.ts'
import { faults } from './faults.ts'
import { trial } from './trial.ts'

let lasting: QuorumScene
let forgetting: QuorumScene
beforeAll(async () => {
  forgetting = await QuorumScene.start({ servers: 5, args: forgetful })
  lasting = await QuorumScene.start({ servers: 5, stepped: true })
})
afterEach(() => lasting.mend())
afterAll(() => Promise.all([lasting.stop(), forgetting.stop()]))

// This test fails if `this.majority = Math.floor(sources.length / 2) + 1` becomes `this.majority = sources.length - 1` in
// src/compose/quorum/backend.ts: one server may be missing, but not two (I4). It also fails if
// `round.expect(i, ballots.leave(seat, vote && release))` becomes `if (vote) round.expect(i, ballots.leave(seat, release))` in
// src/compose/quorum/kind.ts: a late grant by a server that was silent is not withdrawn (I7).
test.each(faults)('I1 I2 I4 I6 I7 I8: two of five servers: $name', fault =>
  trial(fault.forgets ? forgetting : lasting, fault),
)

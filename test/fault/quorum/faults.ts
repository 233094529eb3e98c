/** What may befall a server of a quorum, and how that ends. */
import type { QuorumScene } from '../../kit/quorum-scene.ts'

export interface Fault {
  readonly name: string
  /** What the server had granted may be gone there, and it may grant what it would not have granted. */
  readonly clock?: true
  /** Its servers say that they forget. */
  readonly forgets?: true
  begin(scene: QuorumScene, server: number): unknown
  end(scene: QuorumScene, server: number): unknown
}

const partition = (direction: 'up' | 'down' | 'both'): Fault => ({
  name: { up: 'hears nothing', down: 'is not heard', both: 'is cut off' }[direction],
  begin: (scene, server) => scene.partition(server, direction),
  end: (scene, server) => scene.heal(server),
})
const halfOpen = (direction: 'up' | 'down'): Fault => ({
  name: `what goes ${direction} is lost`,
  begin: (scene, server) => scene.lose(server, direction),
  end: (scene, server) => scene.healAnew(server),
})
const step = (ms: number): Fault => ({
  name: `clock ${ms > 0 ? '+' : ''}${ms / 1_000} s`,
  clock: true,
  begin: (scene, server) => scene.step(server, ms),
  end: (scene, server) => scene.step(server, 0),
})

export const killed: Fault = {
  name: 'killed',
  begin: (scene, server) => scene.kill(server),
  end: (scene, server) => scene.resume(server),
}
export const frozen: Fault = {
  name: 'frozen',
  begin: (scene, server) => scene.freeze(server),
  end: (scene, server) => scene.thaw(server),
}
export const partitioned: readonly Fault[] = [partition('both'), partition('up'), partition('down')]

/** Each is of a kind of its own. */
export const faults: readonly Fault[] = [
  killed,
  frozen,
  ...partitioned,
  halfOpen('up'),
  halfOpen('down'),
  // There and back.
  { name: 'slow', begin: (scene, server) => scene.delay(server, 250), end: (scene, server) => scene.heal(server) },
  step(60_000),
  step(-60_000),
  // Last, because its servers have to have been up for a while.
  { name: 'restarted empty', forgets: true, begin: (scene, server) => scene.restartEmpty(server), end: () => {} },
]

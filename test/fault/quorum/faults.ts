/** Defines the faults that a server of a quorum can have: how each fault begins and ends. */
import type { QuorumScene } from '../../kit/quorum-scene.ts'

export interface Fault {
  readonly name: string
  /**
   * The fault steps the server's clock. Leases may end early on that server, so it may grant a lock that is still held.
   */
  readonly clock?: true
  /** The fault needs servers that do not persist their data. Such servers report to clients that they do not. */
  readonly forgets?: true
  begin(scene: QuorumScene, server: number): unknown
  end(scene: QuorumScene, server: number): unknown
}

const partition = (direction: 'up' | 'down' | 'both'): Fault => ({
  name: { up: 'receives nothing', down: 'its replies are held', both: 'is cut off' }[direction],
  begin: (scene, server) => scene.partition(server, direction),
  end: (scene, server) => scene.heal(server),
})
const halfOpen = (direction: 'up' | 'down'): Fault => ({
  name: `packets ${direction} are lost`,
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

export const faults: readonly Fault[] = [
  killed,
  frozen,
  ...partitioned,
  halfOpen('up'),
  halfOpen('down'),
  // Each request and each reply takes 250 ms.
  { name: 'slow', begin: (scene, server) => scene.delay(server, 250), end: (scene, server) => scene.heal(server) },
  step(60_000),
  step(-60_000),
  // This fault is last because its servers must have been up for a while before it begins.
  { name: 'restarted empty', forgets: true, begin: (scene, server) => scene.restartEmpty(server), end: () => {} },
]

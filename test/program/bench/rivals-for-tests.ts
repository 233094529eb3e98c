/** Rivals that misbehave. Workers load this file too. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Contender, Rival } from '../../../benchmarks/contract.ts'

function rival(name: string, acquire: Contender['acquire']): Rival {
  return {
    name,
    kind: 'rival',
    fair: false,
    package: undefined,
    note: '',
    runtime: 'node',
    missing: async () => undefined,
    async open() {
      return { contender: () => ({ acquire }), close: async () => {} }
    },
  }
}

const granted = async () => async () => {}

export const hanging = rival('hanging', () => new Promise(() => {}))
export const failing = rival('failing', () => Promise.reject(new Error('it does not work')))
/** Nothing else in its process gets its turn any more. */
export const stuck = rival('stuck', () => {
  for (;;);
})
/** Excludes nobody. */
export const noLock = rival('no-lock', async () => {
  await sleep(1)
  return () => sleep(1)
})
/** The first to ask in a process waits for ever; the others get it at once. */
let asked = 0
export const leaving = rival('leaving', async () => {
  if (asked++ === 0) await new Promise(() => {})
  await sleep(1)
  return () => sleep(1)
})
export const absent: Rival = { ...rival('absent', granted), missing: async () => 'not installed' }

export default [hanging, failing, stuck, noLock, leaving, absent]

/** Rivals that misbehave. The tests load this file, and so do the worker processes of the benchmark. */
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
/** A rival whose call blocks its process for ever. */
export const stuck = rival('stuck', () => {
  for (;;);
})
/** A rival whose lock excludes no other caller. */
export const noLock = rival('no-lock', async () => {
  await sleep(1)
  return () => sleep(1)
})
export const absent: Rival = { ...rival('absent', granted), missing: async () => 'not installed' }

export default [hanging, failing, stuck, noLock, absent]

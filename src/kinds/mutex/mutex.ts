/**
 * The mutual-exclusion lock. One owner holds it at a time. The holder's client may hand it on to a waiter of the same
 * client.
 */
import { surelyUntil } from '../../clock.ts'
import type {
  Claim,
  HoldName,
  KindDefinition,
  NextHolder,
  Parts,
  Passed,
  Traits,
  Vote,
  VoteMode,
  VotingKind,
} from '../../kind.ts'
import { QueuedKind } from '../queued-kind.ts'
import { type MutexScripts, mutexScripts } from '../scripts.ts'
import type { LockState } from '../state.ts'
import { MutexInspection } from './inspection.ts'
import { expectsMutex, stateOfMutex } from './state.ts'

const traits: Traits<LockState> = {
  shared: false,
  reentrant: true,
  expects: expectsMutex,
  stateOf: stateOfMutex,
}

export class Mutex extends QueuedKind implements VotingKind<LockState> {
  /** How many tokens a grant may reserve for hand-offs. lua/holder.lua has the same number. */
  protected readonly block = 1_000
  readonly inspection: MutexInspection
  readonly #parts: Parts<MutexScripts>

  constructor(parts: Parts<MutexScripts>) {
    super(parts, traits)
    this.#parts = parts
    this.inspection = new MutexInspection(parts, key => this.sweep(key))
  }

  vote(claim: Claim, mode: VoteMode, floor: number, returned?: number): Promise<Vote> {
    return new Promise((done, failed) => this.attempt(claim, mode, 0, false, { done, failed }, floor, returned))
  }

  async pass({ key, id }: HoldName, heir: NextHolder, token: number): Promise<Passed | undefined> {
    const { lease } = heir
    const { names, scripts } = this.#parts
    const claim = this.text({ ...heir, key, id, headStart: 0 })
    const { status, values, sent } = await scripts.run('pass', names.of(key), [id, claim, token, lease])
    if (status === 'gone') return undefined
    return { deadline: surelyUntil(sent, Math.min(Number(values[0]), lease)), queued: values[1] === '1' }
  }
}

export const mutex: KindDefinition<LockState, MutexScripts> = {
  name: '',
  traits,
  suffixes: ['', ':q', ':d'],
  least: 1,
  scripts: mutexScripts,
  make: parts => new Mutex(parts),
}

/** One server of a quorum, and the mutex on it. */
import type { Kind, Voting } from '../../kind.ts'
import type { LockState } from '../../kinds/state.ts'
import type { Keys } from '../../redis/keys.ts'
import type { Member } from './member.ts'

export interface Place {
  readonly member: Member
  readonly kind: Kind<LockState>
  readonly voting: Voting
  readonly keys: Keys
}

/** The semaphore. It has a number of permits, and several owners may hold some of them at a time. */
import { LockError } from '../../errors.ts'
import type { KindDefinition, Traits } from '../../kind.ts'
import { decodeWants, NO_LIMIT } from '../claim.ts'
import { waitFor } from '../expected.ts'
import { type PermitsScripts, semaphoreScripts } from '../scripts.ts'
import type { LockState } from '../state.ts'
import { stateOfSemaphore } from './inspection.ts'
import { Permits } from './permits.ts'
import { among } from './turns.ts'

const traits: Traits<LockState> = {
  noun: 'semaphore',
  shared: true,
  reentrant: false,
  expects({ position, age, turn }, { hold, crowd }, text) {
    const { permits, of } = decodeWants(text)
    const [place, room] = turn && crowd ? among(crowd, turn, position, of) : [position, of]
    return waitFor(place, hold / room, hold / permits, age)
  },
  stateOf: (key, found, pause) => stateOfSemaphore(key, found, traits.expects, pause),
  heldBy({ taken }, { wants }) {
    if (!taken) return undefined
    const [permits, holds] = taken
    return `${permits} of ${decodeWants(wants).of} permits are taken by${holds > 1 ? ` ${holds} holders, the first is` : ''}`
  },
  // Different numbers are allowed: each call is limited only by the number that it gives, so a deployment can raise the
  // number while old clients still run. But different numbers may also be a mistake.
  differs({ key, wants }, among, label) {
    const { of, group } = decodeWants(wants)
    const [others, limit, weight] = among.split(';')
    const own = 'pass the same number in all calls, because each call is limited only by its own number'
    const told = (what: string) => new LockError('ERR_LOCK_PERMITS', `semaphore "${key}": this call sets ${what}`, key)
    if (others && others !== `${of}`)
      return told(`permits to ${of}, but the holder ${label} set it to ${others}; ${own}`)
    if (!group || limit === undefined) return undefined
    const ours = group.limit ?? 'none'
    const theirs = limit === NO_LIMIT ? 'none' : limit
    if (`${ours}` !== theirs) {
      return told(`groupLimit of the group "${group.name}" to ${ours}, but another call set it to ${theirs}; ${own}`)
    }
    if (group.weight === undefined || group.weight === Number(weight)) return undefined
    return told(
      `groupWeight of the group "${group.name}" to ${group.weight}, but it was ${weight}; the newest weight counts`,
    )
  },
}

export const semaphore: KindDefinition<LockState, PermitsScripts> = {
  name: 'semaphore',
  traits,
  suffixes: ['', ':d', ':q', ':w', ':t', ':s', ':n'],
  least: 2,
  scripts: semaphoreScripts,
  make: parts => new Permits(parts, traits),
}

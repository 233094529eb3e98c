/**
 * The smallest possible kind of lock, for tests: a flag that only one holder at a time can raise. It has no queue, no
 * local hand-off and no replicas. Waiters receive a message when the holder lowers the flag.
 */
import { surelyUntil } from '../../src/clock.ts'
import type {
  Claim,
  Granted,
  HoldName,
  Inspection,
  Kind,
  KindDefinition,
  Parts,
  Refused,
  Released,
  RenewalRequest,
  Renewed,
  Reply,
} from '../../src/kind.ts'
import type { Outcome } from '../../src/outcome.ts'

export interface FlagState {
  readonly key: string
  readonly up: boolean
}

const texts = {
  raise: `
      local by = redis.call('GET', KEYS[1])
      if by and by ~= ARGV[1] then return 'refused ' .. redis.call('PTTL', KEYS[1]) end
      if not by then redis.call('INCR', KEYS[2]) end
      redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
      return 'granted ' .. redis.call('GET', KEYS[2])`,
  lower: `
      if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'gone' end
      redis.call('DEL', KEYS[1])
      return 'lowered ' .. redis.call('PUBLISH', KEYS[1] .. ':unlock', 'free ' .. string.sub(ARGV[1], 1, 12))`,
  prolong: `
      if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'gone' end
      if ARGV[2] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
      return 'lasts ' .. redis.call('PTTL', KEYS[1])`,
  look: `return redis.call('GET', KEYS[1]) and 'up' or 'down'`,
}

interface Scripts {
  raise(id: string, ms: number): 'granted' | 'refused'
  lower(id: string): 'lowered' | 'gone'
  prolong(id: string, ms: number): 'lasts' | 'gone'
  look(): 'up' | 'down'
}

class Flag implements Kind<FlagState>, Inspection<FlagState> {
  readonly traits = { shared: false, reentrant: true, queues: false }
  readonly inspection = this
  readonly #parts: Parts<Scripts>

  constructor(parts: Parts<Scripts>) {
    this.#parts = parts
  }

  attempt(
    { key, id, lease }: Claim,
    _mode: 'try' | 'queue',
    _reserve: number,
    _waits: boolean,
    to: Outcome<Granted | Refused>,
  ): void {
    const { names, scripts } = this.#parts
    const read = ({ status, values: [number], sent }: Reply<'granted' | 'refused'>): Granted | Refused => {
      if (status === 'granted') {
        return { granted: true, token: Number(number), deadline: surelyUntil(sent, lease), via: 'immediate' }
      }
      const holder = { label: '', since: sent }
      return { granted: false, sent, ttl: Number(number), position: 0, ticket: '', holder, clock: 0 }
    }
    scripts.post('raise', names.of(key), [id, lease], read, to)
  }

  tend(): Promise<never> {
    return Promise.reject(new Error('a flag has no queue'))
  }

  leave(claim: Claim): Promise<void> {
    return this.giveBack(claim)
  }

  async giveBack(hold: HoldName): Promise<void> {
    await new Promise<Released>((done, failed) => this.release(hold, undefined, { done, failed }))
  }

  release({ key, id }: HoldName, _used: number | undefined, to: Outcome<Released>): void {
    const { names, scripts } = this.#parts
    const read = ({ status, repeated }: Reply<'lowered' | 'gone'>) => ({ ended: status === 'lowered' || repeated })
    scripts.post('lower', names.of(key), [id], read, to)
  }

  renew(asked: readonly RenewalRequest[]): Promise<Renewed[]> {
    const { names, scripts } = this.#parts
    return Promise.all(
      asked.map(({ hold: { key, id }, ms }) =>
        scripts.run('prolong', names.of(key), [id, ms], ({ status, values: [lasts], sent }) =>
          status === 'gone' ? 'lost' : surelyUntil(sent, Number(lasts)),
        ),
      ),
    )
  }

  placeOf(key: string): string {
    return this.#parts.names.placeOf(key)
  }

  async inspect(key: string): Promise<FlagState> {
    const { names, scripts } = this.#parts
    const { status } = await scripts.run('look', names.of(key), [])
    return { key, up: status === 'up' }
  }

  async isLocked(key: string): Promise<boolean> {
    return (await this.inspect(key)).up
  }

  async find(key: string): Promise<FlagState | undefined> {
    const state = await this.inspect(key)
    return state.up ? state : undefined
  }

  forceRelease(): Promise<boolean> {
    return Promise.reject(new Error('a flag is lowered by its holder'))
  }
}

export const flag: KindDefinition<FlagState, Scripts> = {
  name: 'flag',
  suffixes: ['', ':tokens'],
  least: 2,
  scripts: texts,
  make: parts => new Flag(parts),
}

/**
 * Names in Redis. All keys and channels of one lock share one hash tag, so that a cluster keeps them in one slot.
 *
 *   key without a hash tag      order:1        lock:{order:1}        lock:{order:1}:queue     …:expiry  …:holds
 *   key with a tag of its own   {user}:order   lock:{user}:order     lock:{user}:order:queue  …:expiry  …:holds
 *
 * The key is any string that a user chooses. So the mapping must be one-to-one for every string; otherwise two keys
 * would share a lock, or one key's lock would be another key's queue. The mapping is also one-to-one for pairs of
 * prefix and key, as long as no prefix contains a brace: there is no ":" between the prefix and the tag, so the last
 * ":" before the tag ends the prefix. For that, some keys are changed:
 *   - a tagged key with a ":" before its tag ("a:{b}") has "%3A" there, and "%25" for a "%";
 *   - a tagged key that would look like an untagged one ("{a}"), or like the queue of another key ("{a}:queue"),
 *     gets ":lock" at its end; so does one that ends in ":lock" already, to stay different from those;
 *   - an untagged key that begins with a brace ("}x", "{}") gets one more "{", or its tag would be empty.
 *
 * These are the names of mutexes. Another kind puts its own name in front, as in "lock:%permits/{order:1}". The name of
 * a mutex has "%" before a tag only as "%3A" or "%25", and the name of a kind consists of letters up to the first "/".
 * So no name belongs to two kinds.
 */
import type { KindDefinition, KindNames, Names } from '../kind.ts'

/** The part of the names that all kinds of a client share. */
export class Namespace {
  /** All names begin with this text. */
  readonly root: string
  readonly cluster: boolean
  readonly inboxes: string

  /** `cluster`: each lock has inboxes in its own slot, because a script can publish only to its own slot. */
  constructor(root: string, cluster: boolean, inboxes = `${root}inbox:`) {
    this.root = root
    this.cluster = cluster
    this.inboxes = inboxes
  }

  /** Returns the start of the inbox names for a lock. A client's inbox has this prefix followed by the client's id. */
  inboxPrefix(lock: string): string {
    return this.cluster ? `${lock}:inbox:` : this.inboxes
  }

  /**
   * Returns the part of Redis in which a lock lies. One script call can have several locks of one place. A single
   * server is one place. In a cluster, all locks with the same hash tag are in one place.
   */
  placeOfLock(lock: string): string {
    if (!this.cluster) return ''
    const open = lock.indexOf('{') + 1
    return lock.slice(open, lock.indexOf('}', open))
  }

  /** A SCAN pattern that matches every lock's key, and possibly others. */
  get pattern(): string {
    return `${this.root.replace(/[\\*?[\]]/g, '\\$&')}*`
  }
}

/** The names of the locks of one kind. */
export class Keys<N extends Names = Names> extends Namespace implements KindNames<N> {
  readonly #namesOf: (lock: string) => N
  readonly #ambiguous: RegExp
  /** The latest result of `of`. The next call usually has the same key. */
  #last: { readonly key: string | undefined; readonly names: N }

  constructor(of: Namespace, { name, namesOf }: Pick<KindDefinition<unknown, never, N>, 'name' | 'namesOf'>) {
    super(name ? `${of.root}%${name}/` : of.root, of.cluster, of.inboxes)
    this.#namesOf = namesOf
    const names = namesOf('')
    this.#last = { key: undefined, names }
    // The first suffix is '', so the others follow a '|'.
    this.#ambiguous = new RegExp(`^\\{[^]*\\}$|(:lock${Object.values(names).join('|')})$`)
  }

  of(key: string): N {
    if (key !== this.#last.key) this.#last = { key, names: this.#namesOf(this.root + this.#encode(key)) }
    return this.#last.names
  }

  keyOf(lock: string): string | undefined {
    return lock.startsWith(this.root) ? this.#decode(lock.slice(this.root.length)) : undefined
  }

  placeOf(key: string): string {
    return this.placeOfLock(this.of(key).lock)
  }

  #encode(key: string): string {
    if (!hasTag(key)) return /^[{}]/.test(key) ? `{{${key}}` : `{${key}}`
    const name = beforeTag(key, text => text.replace(/[%:]/g, encodeURIComponent))
    return this.#ambiguous.test(name) ? `${name}:lock` : name
  }

  #decode(name: string): string | undefined {
    if (name.startsWith('{') && name.endsWith('}')) {
      const inner = name.slice(1, -1)
      const key = inner.startsWith('{') ? inner.slice(1) : inner
      return this.#encode(key) === name ? key : undefined
    }
    const tagged = name.endsWith(':lock') ? name.slice(0, -5) : name
    if (!hasTag(tagged)) return undefined
    const key = beforeTag(tagged, text => text.replaceAll('%3A', ':').replaceAll('%25', '%'))
    return this.#encode(key) === name ? key : undefined
  }
}

const UNLOCK = ':unlock'

/** Returns the channel that tells the unfair waiters of a lock that the lock is free. */
export function unlockChannel(lock: string): string {
  return lock + UNLOCK
}

/** Returns a lock's first key from the name of its unlock channel; undefined for other channels. */
export function lockOfChannel(channel: string): string | undefined {
  return channel.endsWith(UNLOCK) ? channel.slice(0, -UNLOCK.length) : undefined
}

function hasTag(key: string): boolean {
  const open = key.indexOf('{')
  return open >= 0 && key.indexOf('}', open) > open + 1
}

function beforeTag(key: string, change: (text: string) => string): string {
  const open = key.indexOf('{')
  return open === 0 ? key : change(key.slice(0, open)) + key.slice(open)
}

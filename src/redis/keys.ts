/**
 * Names in Redis. All keys and channels of one lock share one hash tag, so that a cluster keeps them in one slot.
 *
 *   key without a hash tag      order:1        lock:{order:1}        lock:{order:1}:q     …:d
 *   key with a tag of its own   {user}:order   lock:{user}:order     lock:{user}:order:q  …:d
 *
 * A user may choose any string as a key. So two rules must hold for all strings. First, the mapping from keys to names
 * is one-to-one; otherwise two keys would share a lock, or one key's lock would be another key's queue. Second, the
 * last ":" before the tag always ends the prefix. So clients with different prefixes share no names, as long as no
 * prefix contains a brace. To keep both rules, some keys are changed:
 *   - In a key with a tag, each ":" before the tag ("a:{b}") becomes "%3A", and each "%" there becomes "%25".
 *   - A key with a tag could look like a key without one ("{a}"), or like the queue of another key ("{a}:q"). Such
 *     a key gets ":lock" at its end. A key that has a tag and already ends in ":lock" gets a second ":lock".
 *   - A key without a tag may begin with a brace ("}x", "{}"). Such a key gets one more "{"; otherwise its tag would be
 *     empty.
 *
 * These are the names of mutexes. The names of another kind of lock begin with "%", the kind's name and "/", as in
 * "lock:%permits/{order:1}". Before the tag, the name of a mutex has "%" only in "%3A" and "%25", and the name of a
 * kind has only letters. So no name belongs to two kinds.
 */
import type { KeyForm, KindNames, Names } from '../kind.ts'

/** The suffix of a key that never exists, and that a script receives only in a cluster (lua/README.md). */
const NONE = ':n'

/** The settings from which the names of a client's locks are made, for every kind of lock. */
export class Namespace {
  /** All names begin with this text. */
  readonly root: string
  readonly cluster: boolean
  readonly inboxes: string

  /**
   * With `cluster`, each lock has its own inboxes in its own slot, because a script can publish only to the slot of its
   * keys.
   */
  constructor(root: string, cluster: boolean, inboxes = `${root}inbox:`) {
    this.root = root
    this.cluster = cluster
    this.inboxes = inboxes
  }

  /** Returns the start of the names of the inboxes for a lock. The client's id follows it. */
  inboxPrefix(lock: string): string {
    return this.cluster ? `${lock}:inbox:` : this.inboxes
  }

  /**
   * Returns the part of Redis in which a lock lies. One script call can use several locks if they are in one place. A
   * single server is one place. In a cluster, all locks with the same hash tag are in one place.
   */
  placeOfLock(lock: string): string {
    if (!this.cluster) return ''
    const open = lock.indexOf('{') + 1
    return lock.slice(open, lock.indexOf('}', open))
  }

  /** A SCAN pattern that matches every lock's key. It may also match keys that are not locks. */
  get pattern(): string {
    return `${this.root.replace(/[\\*?[\]]/g, '\\$&')}*`
  }
}

/** The names of the locks of one kind. */
export class Keys extends Namespace implements KindNames {
  readonly #suffixes: readonly string[]
  readonly #least: number
  readonly #ambiguous: RegExp
  /** The key that was used last, and its names. The next call often has the same key. */
  #last: { readonly key: string; readonly names: Names } | undefined

  constructor(of: Namespace, { name, suffixes, least }: KeyForm) {
    super(name ? `${of.root}%${name}/` : of.root, of.cluster, of.inboxes)
    this.#suffixes = of.cluster ? suffixes : suffixes.filter(suffix => suffix !== NONE)
    this.#least = least
    // The first of the suffixes is ''. So the text that `join` returns begins with a '|', which separates ':lock' from the
    // others.
    this.#ambiguous = new RegExp(`^\\{[^]*\\}$|(:lock${suffixes.join('|')})$`)
  }

  of(key: string): Names {
    if (key === this.#last?.key) return this.#last.names
    // Nearly all keys have neither a tag nor a brace at their beginning.
    const lock = this.root + (key.includes('{') || key.startsWith('}') ? this.#encode(key) : `{${key}}`)
    const names = { lock, all: this.#suffixes.map(suffix => lock + suffix), least: this.#least }
    this.#last = { key, names }
    return names
  }

  keyOf(lock: string): string | undefined {
    if (lock === this.#last?.names.lock) return this.#last.key
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

/** Returns the channel on which the unfair waiters of a lock receive the message that the lock is free. */
export function unlockChannel(lock: string): string {
  return lock + UNLOCK
}

/** If `channel` is the unlock channel of a lock, returns the lock's name in Redis, otherwise undefined. */
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

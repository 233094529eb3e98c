/** The keys of a Redis in memory, with their values and their expiry. */
import { SortedSet } from './sorted-set.ts'
import { ErrorReply } from './values.ts'

export type Hash = Map<string, string>

type Value = string | Hash | SortedSet

interface Entry {
  readonly value: Value
  /** When the key expires, in ms by the server's clock; Infinity if it never expires. */
  until: number
}

/** The server's time of day, µs. */
export interface ServerClock {
  readonly micros: number
}

export class Keyspace {
  readonly #clock: ServerClock
  readonly #entries = new Map<string, Entry>()
  /** Called for each new member of a sorted set. */
  joined: (key: string, member: string, score: number) => void = () => {}

  constructor(clock: ServerClock) {
    this.#clock = clock
  }

  get micros(): number {
    return this.#clock.micros
  }

  /** The server's time in ms, rounded down, because Redis compares that value with the expiry of keys. */
  get now(): number {
    return Math.floor(this.micros / 1000)
  }

  /** The names of all keys that have not expired. */
  get names(): string[] {
    return [...this.#entries.keys()].filter(key => this.has(key))
  }

  has(key: string): boolean {
    return this.#find(key) !== undefined
  }

  text(key: string): string | undefined {
    const value = this.#find(key)?.value
    if (value === undefined || typeof value === 'string') return value
    throw wrongType()
  }

  hash(key: string): Hash | undefined {
    const value = this.#find(key)?.value
    if (value === undefined || value instanceof Map) return value
    throw wrongType()
  }

  sortedSet(key: string): SortedSet | undefined {
    const value = this.#find(key)?.value
    if (value === undefined || value instanceof SortedSet) return value
    throw wrongType()
  }

  setText(key: string, text: string): void {
    this.#entries.set(key, { value: text, until: Number.POSITIVE_INFINITY })
  }

  /**
   * Returns the hash of this key, and creates a missing one. The caller must then add a field, because Redis has no
   * empty hashes.
   */
  hashForWriting(key: string): Hash {
    return this.hash(key) ?? this.#make(key, new Map<string, string>())
  }

  sortedSetForWriting(key: string): SortedSet {
    return this.sortedSet(key) ?? this.#make(key, new SortedSet())
  }

  /** Deletes the key if its value has become empty. Call this after removals. */
  dropIfEmpty(key: string): void {
    const value = this.#entries.get(key)?.value
    if (value !== undefined && typeof value !== 'string' && value.size === 0) this.#entries.delete(key)
  }

  delete(key: string): boolean {
    return this.has(key) && this.#entries.delete(key)
  }

  clear(): void {
    this.#entries.clear()
  }

  /**
   * Returns when the key expires, in ms by the server's clock: Infinity if it never expires, and undefined if it does
   * not exist.
   */
  livesUntil(key: string): number | undefined {
    return this.#find(key)?.until
  }

  /** Sets the expiry of a key. Returns false if the key does not exist. */
  letLiveUntil(key: string, until: number): boolean {
    const entry = this.#find(key)
    if (!entry) return false
    entry.until = until
    if (until <= this.now) this.#entries.delete(key)
    return true
  }

  #find(key: string): Entry | undefined {
    const entry = this.#entries.get(key)
    if (!entry || entry.until >= this.now) return entry
    this.#entries.delete(key)
    return undefined
  }

  #make<T extends Value>(key: string, value: T): T {
    this.#entries.set(key, { value, until: Number.POSITIVE_INFINITY })
    return value
  }
}

function wrongType(): ErrorReply {
  return new ErrorReply('WRONGTYPE Operation against a key holding the wrong kind of value')
}

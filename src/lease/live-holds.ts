/** The holds of a client that have not ended, as they are looked for: by what Redis calls them, and by their key. */
import { Hold } from './hold.ts'

export class LiveHolds {
  readonly #byId = new Map<string, Hold>()
  /** Nearly every key has one hold only, which then stands there itself. */
  readonly #byKey = new Map<string, Hold | Set<Hold>>()

  get size(): number {
    return this.#byId.size
  }

  /** Oldest first. */
  get all(): Hold[] {
    return [...this.#byId.values()]
  }

  /** The hold that Redis knows by this id. */
  find(id: string): Hold | undefined {
    return this.#byId.get(id)
  }

  /** False: it has ended, though another hold may have followed it by the same name. */
  has(hold: Hold): boolean {
    return this.#byId.get(hold.name.id) === hold
  }

  /** Those of the key, oldest first. */
  ofKey(key: string): Iterable<Hold> {
    const there = this.#byKey.get(key) ?? []
    return there instanceof Hold ? [there] : there
  }

  oldestOf(key: string): Hold | undefined {
    for (const hold of this.ofKey(key)) return hold
    return undefined
  }

  /** Whether the hold is the only one of its key. */
  isAlone(hold: Hold): boolean {
    return this.#byKey.get(hold.key) === hold
  }

  /** Those of the same grant: this one, and those that have re-entered. */
  ofGrant({ key, token }: Hold): Hold[] {
    return [...this.ofKey(key)].filter(hold => hold.token === token)
  }

  add(hold: Hold): void {
    this.#byId.set(hold.name.id, hold)
    const there = this.#byKey.get(hold.key)
    if (there instanceof Set) there.add(hold)
    else this.#byKey.set(hold.key, there ? new Set([there, hold]) : hold)
  }

  delete(hold: Hold): void {
    this.#byId.delete(hold.name.id)
    const there = this.#byKey.get(hold.key)
    if (!(there instanceof Set)) this.#byKey.delete(hold.key)
    else if (there.delete(hold) && there.size === 1) for (const last of there) this.#byKey.set(hold.key, last)
  }
}

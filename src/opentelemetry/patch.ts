/**
 * Replaces the method of this object alone by what `make` makes of it. Returns what puts it back: if somebody else has
 * replaced it in the meantime, theirs stays, and ours below it only passes on.
 */
export function patch<T extends object, K extends keyof T>(
  target: T,
  name: K,
  make: (original: T[K]) => T[K],
): () => void {
  const own = Object.getOwnPropertyDescriptor(target, name)
  const original = (target[name] as Method).bind(target)
  const observed = make(original as T[K]) as Method
  let active = true
  const value: Method = (...args) => (active ? observed : original)(...args)
  Object.defineProperty(target, name, { value, configurable: true, writable: true })
  return () => {
    active = false
    if (target[name] !== value) return
    if (own) Object.defineProperty(target, name, own)
    else delete target[name]
  }
}

type Method = (...args: unknown[]) => unknown

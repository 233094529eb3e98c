/**
 * Returns the first index whose value is at least `least`, or the length if there is none. The list is sorted by the
 * value.
 */
export function lowerBound<T>(list: readonly T[], least: number, by: (item: T) => number): number {
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (by(list[middle] as T) < least) low = middle + 1
    else high = middle
  }
  return low
}

/** Groups the items by their key. Each group keeps their order. */
export function groupBy<T, K>(items: Iterable<T>, keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group) group.push(item)
    else groups.set(key, [item])
  }
  return groups
}

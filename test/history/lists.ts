/**
 * Returns the index of the first item for which `by` returns at least `least`. If there is no such item, returns the
 * length of the list. The list is sorted by the results of `by`.
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

/** Each group keeps the order of its items. */
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
